"""Where `import torch_npu` goes, and what happens to imports that are repaired."""

import ast
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from helpers import code, findings, fixed
from npulens.analysis import StatementCache

USE = "x.cuda()"
DONE = "x.npu()"

# The head of a file, before and after; below it stands a use.
HEADS = [
    ("import torch", "import torch\nimport torch_npu  # noqa: F401"),
    ("import torch as t", "import torch as t\nimport torch_npu  # noqa: F401"),
    ("import torch.nn as nn", "import torch.nn as nn\nimport torch_npu  # noqa: F401"),
    ("from torch import nn", "from torch import nn\nimport torch_npu  # noqa: F401"),
    (
        "from torch import (\n    nn,\n    optim,\n)",
        "from torch import (\n    nn,\n    optim,\n)\nimport torch_npu  # noqa: F401",
    ),
    ("import torch  # the library", "import torch  # the library\nimport torch_npu  # noqa: F401"),
    ("import torch \\\n    as t", "import torch \\\n    as t\nimport torch_npu  # noqa: F401"),
    ("import torch, os", "import torch, os\nimport torch_npu  # noqa: F401"),
    ("import os, torch", "import os, torch\nimport torch_npu  # noqa: F401"),
    # docstring, __future__, comments
    ('"""Doc."""\nimport torch', '"""Doc."""\nimport torch\nimport torch_npu  # noqa: F401'),
    (
        '"""Doc."""\n\nfrom __future__ import annotations\n\nimport torch\n',
        '"""Doc."""\n\nfrom __future__ import annotations\n\nimport torch\n'
        "import torch_npu  # noqa: F401\n",
    ),
    (
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# torch\nimport torch",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# torch\nimport torch\n"
        "import torch_npu  # noqa: F401",
    ),
    # groups, as isort sorts them
    (
        "import os\nimport sys\n\nimport numpy as np\nimport torch\nimport torchvision\n\n"
        "import mine",
        "import os\nimport sys\n\nimport numpy as np\nimport torch\n"
        "import torch_npu  # noqa: F401\n"
        "import torchvision\n\nimport mine",
    ),
    (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport yaml",
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        "import torch_npu  # noqa: F401\n"
        "import yaml",
    ),
    (
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader",
        "import torch\nimport torch_npu  # noqa: F401\nfrom torch import nn\n"
        "from torch.utils.data import DataLoader",
    ),
    (
        "from torch import nn\nimport torch\nimport numpy",
        "from torch import nn\nimport torch\nimport torch_npu  # noqa: F401\nimport numpy",
    ),
    # blocks
    (
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n"
        "else:\n    import torch_npu  # noqa: F401",
    ),
    (
        "try:\n    import apex\n    import torch\n    import torch.nn\nfinally:\n    pass",
        "try:\n    import apex\n    import torch\n    import torch.nn\n"
        "    import torch_npu  # noqa: F401\n"
        "finally:\n    pass",
    ),
    ("if ok:\n    import torch", "if ok:\n    import torch\n    import torch_npu  # noqa: F401"),
    ("if ok:\n\timport torch", "if ok:\n\timport torch\n\timport torch_npu  # noqa: F401"),
    (
        "with quiet():\n    import torch",
        "with quiet():\n    import torch\n    import torch_npu  # noqa: F401",
    ),
    (
        "from typing import TYPE_CHECKING\n\nfrom torch import nn\n\n"
        "if TYPE_CHECKING:\n    import torch",
        "from typing import TYPE_CHECKING\n\nfrom torch import nn\n"
        "import torch_npu  # noqa: F401\n\n"
        "if TYPE_CHECKING:\n    import torch",
    ),
    (
        "import typing as t\n\nif t.TYPE_CHECKING:\n    from torch import Tensor\n"
        "from torch import nn",
        "import typing as t\n\nif t.TYPE_CHECKING:\n    from torch import Tensor\n"
        "from torch import nn\nimport torch_npu  # noqa: F401",
    ),
    (
        "try: import torch\nexcept ImportError: torch = None",
        "try: import torch\nexcept ImportError: torch = None\n"
        "else:\n    import torch_npu  # noqa: F401",
    ),
    (
        "try:\n  import torch\nexcept ImportError:\n  ok = False\nelse:\n  # there\n  ok = True\n",
        "try:\n  import torch\nexcept ImportError:\n  ok = False\nelse:\n  # there\n"
        "  import torch_npu  # noqa: F401\n  ok = True\n",
    ),
    (
        "try: import torch\nexcept ImportError: torch = None\nelse: ok = True",
        "try: import torch\nexcept ImportError: torch = None\nelse: ok = True; import torch_npu",
    ),
    (
        "try:\n\timport torch\n\tOK = True\nexcept Exception:\n\tOK = False\nfinally:\n\tpass\n"
        "x = 1",
        "try:\n\timport torch\n\tOK = True\nexcept Exception:\n\tOK = False\n"
        "else:\n\timport torch_npu  # noqa: F401\nfinally:\n\tpass\nx = 1",
    ),
    (
        "if wanted:\n    try:\n        import torch\n    except (ImportError, OSError):\n"
        "        pass\n",
        "if wanted:\n    try:\n        import torch\n    except (ImportError, OSError):\n"
        "        pass\n"
        "    else:\n        import torch_npu  # noqa: F401\n",
    ),
    (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nfrom torch import nn\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nfrom torch import nn\n"
        "import torch_npu  # noqa: F401\n",
    ),
    # a program, not a library that may be missing
    (
        "try:\n    import torch\n    main()\nexcept Exception as error:\n    print(error)",
        "try:\n    import torch\n    import torch_npu  # noqa: F401\n    main()\n"
        "except Exception as error:\n    print(error)",
    ),
    # there already (BR-37)
    ("import torch\nimport torch_npu  # noqa: F401",) * 2,
    ("import torch_npu  # noqa: F401\nimport torch",) * 2,
    ("import torch, torch_npu",) * 2,
    ("import torch\nimport torch_npu as npu",) * 2,
    ("import torch\nimport torch_npu.npu",) * 2,
    ("import torch\nfrom torch_npu import npu",) * 2,
    ("import torch\ntry:\n    import torch_npu  # noqa: F401\nexcept ImportError:\n    pass",) * 2,
    ("import torch\nif ok:\n    import torch_npu  # noqa: F401",) * 2,
    ("import torch\nwith quiet():\n    import torch_npu  # noqa: F401",) * 2,
    # not where code runs
    (
        "import torch\n\ndef f():\n    import torch_npu  # noqa: F401",
        "import torch\nimport torch_npu  # noqa: F401\n\ndef f():\n"
        "    import torch_npu  # noqa: F401",
    ),
    (
        'import torch\ns = "import torch_npu  # noqa: F401"',
        'import torch\nimport torch_npu  # noqa: F401\ns = "import torch_npu  # noqa: F401"',
    ),
    (
        "import torch\n# import torch_npu  # noqa: F401",
        "import torch\nimport torch_npu  # noqa: F401\n# import torch_npu  # noqa: F401",
    ),
    # not needed, or no place for it
    ("import numpy",) * 2,
    ("import torchvision",) * 2,
    ("from . import torch",) * 2,
    ("",) * 2,
    # repaired imports bring it themselves
    ("import torch.cuda", "import torch\nimport torch_npu  # noqa: F401"),
    ("import torch.cuda, os", "import torch, os\nimport torch_npu  # noqa: F401"),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("before", "after"), HEADS)
def test_the_import_goes_where_torch_is_imported(before: str, after: str, newline: str) -> None:
    result = fixed(f"{before}\n{USE}\n".replace("\n", newline))
    assert result == f"{after}\n{DONE}\n".replace("\n", newline)


@pytest.mark.parametrize(("before", "after"), HEADS)
def test_what_is_known_of_the_file_does_not_move_the_import(before: str, after: str) -> None:
    source = f"{before}\n{USE}\n"
    cache = StatementCache()
    assert findings(f"{source}\n", cache=cache) == findings(f"{source}\n")
    assert findings(source, cache=cache) == findings(source)


# Whole files.
FILES = [
    # BR-18: each function that imports torch lazily
    (
        "def a():\n    import torch\n    torch.cuda.synchronize()\n\n"
        "def b():\n    import torch\n    torch.cuda.synchronize()\n",
        "def a():\n    import torch\n    import torch_npu  # noqa: F401\n"
        "    torch.npu.synchronize()\n\n"
        "def b():\n    import torch\n    import torch_npu  # noqa: F401\n"
        "    torch.npu.synchronize()\n",
    ),
    (
        'def a():\n    """Doc."""\n    import os\n    import torch\n\n    def inner():\n'
        "        torch.cuda.synchronize()\n",
        'def a():\n    """Doc."""\n    import os\n    import torch\n'
        "    import torch_npu  # noqa: F401\n\n"
        "    def inner():\n        torch.npu.synchronize()\n",
    ),
    (
        "class A:\n    def f(self):\n        import torch\n        self.m.cuda()\n"
        "        torch.cuda.empty_cache()\n",
        "class A:\n    def f(self):\n        import torch\n        import torch_npu  # noqa: F401\n"
        "        self.m.npu()\n        torch.npu.empty_cache()\n",
    ),
    (
        "import torch\n\ndef a():\n    import torch\n    torch.cuda.synchronize()\n",
        "import torch\nimport torch_npu  # noqa: F401\n\ndef a():\n    import torch\n"
        "    torch.npu.synchronize()\n",
    ),
    (
        "def a():\n    import torch\n    def b():\n        import torch\n        x.cuda()\n"
        "    torch.cuda.synchronize()\n",
        "def a():\n    import torch\n    import torch_npu  # noqa: F401\n    def b():\n"
        "        import torch\n        x.npu()\n    torch.npu.synchronize()\n",
    ),
    (
        "def a():\n    import torch\n    import torch_npu  # noqa: F401\n"
        "    torch.cuda.synchronize()\n",
        "def a():\n    import torch\n    import torch_npu  # noqa: F401\n"
        "    torch.npu.synchronize()\n",
    ),
    (
        "def a():\n    import torch\n    x.to('cuda')\n    return torch.zeros(3, device='cuda')\n",
        "def a():\n    import torch\n    import torch_npu  # noqa: F401\n    x.to('npu')\n"
        "    return torch.zeros(3, device='npu')\n",
    ),
    (
        "def a():\n    if x:\n        import torch\n        torch.cuda.synchronize()\n",
        "def a():\n    if x:\n        import torch\n        import torch_npu  # noqa: F401\n"
        "        torch.npu.synchronize()\n",
    ),
    (
        "async def a():\n    import torch\n    torch.cuda.synchronize()\n",
        "async def a():\n    import torch\n    import torch_npu  # noqa: F401\n"
        "    torch.npu.synchronize()\n",
    ),
    (
        "class A:\n    def f(self):\n        from torch import nn\n        self.m.cuda()\n",
        "class A:\n    def f(self):\n        from torch import nn\n"
        "        import torch_npu  # noqa: F401\n"
        "        self.m.npu()\n",
    ),
    # several statements on a line: before the use
    ("import torch; x.cuda()\n", "import torch; import torch_npu; x.npu()\n"),
    (
        "import os; import torch; torch.cuda.synchronize()\n",
        "import os; import torch; import torch_npu; torch.npu.synchronize()\n",
    ),
    ("import torch; import os\nx.cuda()\n", "import torch; import torch_npu; import os\nx.npu()\n"),
    (
        "def a():\n    import torch; torch.cuda.synchronize()\n",
        "def a():\n    import torch; import torch_npu; torch.npu.synchronize()\n",
    ),
    (
        "def a(): import torch; torch.cuda.synchronize()\n",
        "def a(): import torch; import torch_npu; torch.npu.synchronize()\n",
    ),
    # no final newline
    ("import torch\nx.cuda()", "import torch\nimport torch_npu  # noqa: F401\nx.npu()"),
    ("x.cuda()\nimport torch", "x.npu()\nimport torch\nimport torch_npu  # noqa: F401"),
    ("x.cuda()\nimport torch\n", "x.npu()\nimport torch\nimport torch_npu  # noqa: F401\n"),
    # form feed, blank lines
    (
        "\x0cimport torch\nx.cuda()\n",
        "\x0cimport torch\n\x0cimport torch_npu  # noqa: F401\nx.npu()\n",
    ),
    (
        "\n\nimport torch\n\n\nx.cuda()\n",
        "\n\nimport torch\nimport torch_npu  # noqa: F401\n\n\nx.npu()\n",
    ),
    # twice imported torch
    (
        "import torch\ntorch.cuda.synchronize()\nimport torch\ntorch.cuda.synchronize()\n",
        "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\nimport torch\n"
        "torch.npu.synchronize()\n",
    ),
    # nothing to import where nothing changes
    ("import torch\ntorch.zeros(3)\n",) * 2,
    ("import torch\nif x.device.type == 'npu': pass\n",) * 2,
]


OPTIONAL = [
    "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
    "try: import torch\nexcept ImportError: torch = None\n",
    "torch = None\ntry:\n    import torch\nexcept Exception:\n    pass\nelse:\n    pass\n",
    "torch = None\ntry:\n    import torch\nexcept ModuleNotFoundError:\n    pass\nfinally:\n"
    "    pass\n",
    '"""Doc."""\nfrom __future__ import annotations\ntry:\n    import torch\nexcept ImportError:\n'
    "    torch = None\n__all__ = ['move']\n",
]


def run_without(text: str, missing: set[str]) -> dict[str, Any]:
    """What a module holds that finds PyTorch and torch_npu, but for what is missing."""
    modules: dict[str, Any] = {"torch": ModuleType("torch"), "torch_npu": ModuleType("torch_npu")}
    space: dict[str, Any] = {"x": SimpleNamespace(npu=lambda: "moved")}
    with patch.dict(sys.modules, modules | dict.fromkeys(missing)):
        exec(compile(text, "optional.py", "exec"), space)
    return space


@pytest.mark.parametrize("before", OPTIONAL)
def test_a_torch_that_may_be_missing_is_missing_only_where_it_is(before: str) -> None:
    after = fixed(f"{before}def move():\n    return x.cuda()\n")
    assert after.count("import torch_npu") == 1
    space = run_without(after, set())
    assert (space["torch"].__name__, space["move"]()) == ("torch", "moved")
    assert run_without(after, {"torch", "torch_npu"})["torch"] is None
    with pytest.raises(ImportError):  # and not: torch is None
        run_without(after, {"torch_npu"})


@pytest.mark.parametrize(("before", "after"), FILES)
def test_whole_files(before: str, after: str) -> None:
    assert fixed(before) == after


# Imports of what lies in torch.cuda.
REPAIRED = [
    ("import torch.cuda as c\nc.synchronize()", "import torch_npu.npu as c\nc.synchronize()"),
    ("import os, torch.cuda as c\nc.x", "import os, torch_npu.npu as c\nc.x"),
    (
        "from torch import cuda\ncuda.synchronize()",
        "from torch_npu import npu as cuda\ncuda.synchronize()",
    ),
    ("from torch import cuda as c", "from torch_npu import npu as c"),
    ("from torch.cuda import synchronize", "from torch_npu.npu import synchronize"),
    ("from torch.cuda import synchronize as s", "from torch_npu.npu import synchronize as s"),
    ("from torch.cuda import synchronize  # keep", "from torch_npu.npu import synchronize  # keep"),
    ("from torch.cuda import *", "from torch_npu.npu import *"),
    ("from torch.cuda.amp import autocast", "from torch_npu.npu.amp import autocast"),
    (
        "from torch.cuda.amp import autocast, GradScaler",
        "from torch_npu.npu.amp import autocast, GradScaler",
    ),
    (
        "from torch.cuda import (\n    is_available,\n    synchronize,\n)",
        "from torch_npu.npu import (\n    is_available,\n    synchronize,\n)",
    ),
    (
        "from torch.cuda import (\n    is_available,  # first\n    synchronize,\n)",
        "from torch_npu.npu import (\n    is_available,  # first\n    synchronize,\n)",
    ),
    (
        "if x: from torch.cuda import synchronize, is_available",
        "if x: from torch_npu.npu import synchronize, is_available",
    ),
    ("if x: from torch.cuda import synchronize", "if x: from torch_npu.npu import synchronize"),
    (
        "from torch import nn, cuda, optim\ncuda.synchronize()",
        "from torch import nn, optim\nfrom torch_npu import npu as cuda\ncuda.synchronize()",
    ),
    (
        "try:\n    from torch.cuda.amp import autocast\nexcept ImportError:\n    autocast = None",
        "try:\n    from torch_npu.npu.amp import autocast\nexcept ImportError:\n"
        "    autocast = None",
    ),
    (
        "def f():\n    from torch import nn, cuda\n    cuda.synchronize()",
        "def f():\n    from torch import nn\n    from torch_npu import npu as cuda\n"
        "    cuda.synchronize()",
    ),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("before", "after"), REPAIRED)
def test_imports_from_torch_cuda(before: str, after: str, newline: str) -> None:
    result = fixed(f"{before}\n".replace("\n", newline))
    assert result == f"{after}\n".replace("\n", newline)


def test_one_import_for_all_fixes_of_a_file() -> None:
    source = "import torch\n" + "x.cuda()\ny.to('cuda')\ntorch.cuda.synchronize()\n" * 20
    assert fixed(source).count("import torch_npu  # noqa: F401") == 1


def test_a_file_in_which_everything_else_stays() -> None:
    source = code('''
        """Train on "cuda:0" (torch.cuda)."""

        from __future__ import annotations

        import argparse   # odd   spacing
        import os ,sys

        import torch
        import torch.nn as nn

        def main( ):
            p = argparse.ArgumentParser( description = "Train with CUDA: cuda:0" )
            p.add_argument( '--device',default = 'cuda' , help='cuda or cpu')   # cuda:0
            args=p.parse_args( )
            if   torch.cuda.is_available( ) :
                net = nn.Linear( 1 ,1 ) . cuda( )   # to "cuda"
            print( "on" , 'cuda:0' )


        if __name__=="__main__" : main( )
        ''')
    expected = (
        source.replace("as nn\n", "as nn\nimport torch_npu  # noqa: F401\n")
        .replace("default = 'cuda'", "default = 'npu'")
        .replace("torch.cuda.is_available", "torch.npu.is_available")
        .replace(". cuda( )", ". npu( )")
    )
    assert fixed(source) == expected


def test_snippets_are_python() -> None:
    for case in HEADS + FILES + REPAIRED:
        for text in case if isinstance(case, tuple) and isinstance(case[0], str) else case.values:
            ast.parse(text)
