"""What a name means where it stands: imports, aliases, scopes, rebinding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import CATALOGUE, bug, check, findings, fixed, marked, marks, unmarked

# Ways to reach torch.cuda; everything marked is NPU101 unless it says otherwise.
IMPORTS = [
    "import torch\n⟦NPU101:torch.cuda.synchronize⟧()",
    "import torch as t\n⟦NPU101:t.cuda.synchronize⟧()",
    "import ⟦NPU101:torch.cuda⟧\n⟦NPU101:torch.cuda.synchronize⟧()",
    "import ⟦NPU101:torch.cuda as c⟧\n⟦NPU101:c.synchronize⟧()",
    "import torch.nn\n⟦NPU101:torch.cuda.synchronize⟧()",
    "import os, torch\n⟦NPU101:torch.cuda.synchronize⟧()",
    "import os; import torch; ⟦NPU101:torch.cuda.synchronize⟧()",
    "from torch import ⟦NPU101:cuda⟧\n⟦NPU101:cuda.synchronize⟧()",
    "from torch import ⟦NPU101:cuda as c⟧\n⟦NPU101:c.synchronize⟧()",
    "from torch import nn, ⟦NPU101:cuda⟧\n⟦NPU101:cuda.synchronize⟧()",
    "from torch import (\n    nn,\n    ⟦NPU101:cuda as c⟧,\n)\n⟦NPU101:c.synchronize⟧()",
    "from torch.cuda import ⟦NPU101:synchronize⟧\nsynchronize()",
    "from torch.cuda import ⟦NPU101:synchronize as s⟧\ns()",
    "from torch.cuda import ⟦NPU101:*⟧\nx = 3",
    "import torch.nn as n\n⟦NPU202:n.DataParallel⟧(m)",
    "from torch.nn import ⟦NPU202:DataParallel as DP⟧\nDP(m)",
    # FN-04: one class, three places
    "from torch.nn.parallel import ⟦NPU202:DataParallel⟧\nDataParallel(m)",
    "import torch\n⟦NPU202:torch.nn.parallel.DataParallel⟧(m)",
    "import torch\n⟦NPU202:torch.nn.parallel.data_parallel.DataParallel⟧(m)",
    # FN-02: star imports
    "from torch.nn import *\n⟦NPU202:DataParallel⟧(m)",
    "from torch import *\n⟦NPU101:cuda.synchronize⟧()",
    "from torch import *\ndef f():\n    ⟦NPU101:cuda.synchronize⟧()",
    "from torch.nn import *\nfrom mine import *\n⟦NPU202:DataParallel⟧(m)",
    "from torch.nn import *\nfrom mine import DataParallel\nDataParallel(m)",
    "from torch.nn import *\nclass DataParallel: ...\nDataParallel(m)",
    "from torch.nn import *\ndef f(DataParallel): DataParallel(m)",
    "from mine import *\nDataParallel(m)\nsynchronize()",
    # FN-03: names in strings
    "from torch import nn\n⟦NPU202:getattr(nn, 'DataParallel')⟧(m)",
    "import torch\n⟦NPU101:getattr(torch, 'cuda')⟧.synchronize()",
    "import torch\nc = ⟦NPU101:getattr(torch, 'cuda')⟧\n⟦NPU101:c.synchronize⟧()",
    "import torch\ngetattr(torch, kind).synchronize()",
    "import torch\ngetattr(torch, 'xpu').synchronize()",
    "import importlib\n⟦NPU101:importlib.import_module('torch').cuda.synchronize⟧()",
    "import importlib\nt = importlib.import_module('torch')\n⟦NPU101:t.cuda.synchronize⟧()",
    "from importlib import import_module\nt = import_module('torch')\n"
    "⟦NPU101:t.cuda.synchronize⟧()",
    "⟦NPU101:__import__('torch').cuda.synchronize⟧()",
    "import importlib\nt = importlib.import_module('mine')\nt.cuda.synchronize()",
    # lazy imports
    "def f():\n    import torch\n    ⟦NPU101:torch.cuda.synchronize⟧()",
    "def f():\n    from torch import ⟦NPU101:cuda⟧\n    ⟦NPU101:cuda.synchronize⟧()",
    "def f():\n    import torch\n    def g():\n        ⟦NPU101:torch.cuda.synchronize⟧()",
    "def f():\n    import torch\ndef g():\n    torch.cuda.synchronize()",
    "class A:\n    def f(self):\n        import torch\n        ⟦NPU101:torch.cuda.synchronize⟧()\n"
    "    def g(self):\n        torch.cuda.synchronize()",
    # imports under a condition, in both orders (ND-01)
    "try:\n    from torch.nn import ⟦NPU202:DataParallel as W⟧\nexcept ImportError:\n"
    "    from mine import W\nW(m)",
    "try:\n    from mine import W\nexcept ImportError:\n"
    "    from torch.nn import ⟦NPU202:DataParallel as W⟧\nW(m)",
    "if x:\n    from torch import ⟦NPU101:cuda⟧\nelse:\n    from mine import cuda\n"
    "cuda.synchronize()",
    "if x:\n    from mine import cuda\nelse:\n    from torch import ⟦NPU101:cuda⟧\n"
    "cuda.synchronize()",
    "if x:\n    import torch\nelse:\n    import jax as torch\n⟦NPU101:torch.cuda.synchronize⟧()",
    "try:\n    import torch\nexcept ImportError:\n    torch = None\n"
    "if torch is not None:\n    ⟦NPU101:torch.cuda.synchronize⟧()",
    "try:\n    import torch\nexcept ImportError:\n    pass\n⟦NPU101:torch.cuda.synchronize⟧()",
    "try:\n    import torch\n    ok = True\nexcept ImportError:\n    ok = False\n"
    "def f():\n    ⟦NPU101:torch.cuda.synchronize⟧()",
    "torch = None\ntry:\n    import torch\nfinally:\n    pass\n⟦NPU101:torch.cuda.synchronize⟧()",
    "with quiet():\n    import torch\n⟦NPU101:torch.cuda.synchronize⟧()",
    "for _ in range(3):\n    import torch\n⟦NPU101:torch.cuda.synchronize⟧()",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
    "def f(x: ⟦NPU107:torch.cuda.FloatTensor⟧): ...",
    "from __future__ import annotations\nimport torch\ndef f(x: ⟦NPU101:torch.cuda.Stream⟧): ...",
]

ALIASES = [
    "dev = ⟦NPU101:torch.cuda⟧\n⟦NPU101:dev.synchronize⟧()",
    "a = b = ⟦NPU101:torch.cuda⟧\n⟦NPU101:b.synchronize⟧()",
    "a, b = ⟦NPU101:torch.cuda⟧, 3\n⟦NPU101:a.synchronize⟧()",
    "(a, [b, c]) = (1, [2, ⟦NPU101:torch.cuda⟧])\n⟦NPU101:c.synchronize⟧()",
    "a = torch\nb = ⟦NPU101:a.cuda⟧\nc = b\n⟦NPU101:c.synchronize⟧()",
    "c: object = ⟦NPU101:torch.cuda⟧\n⟦NPU101:c.synchronize⟧()",
    "sync = ⟦NPU101:torch.cuda.synchronize⟧\nsync()",
    "F = torch.nn.functional\nD = torch.nn\n⟦NPU202:D.DataParallel⟧(m)",
    "if (c := ⟦NPU101:torch.cuda⟧) is not None:\n    ⟦NPU101:c.synchronize⟧()",
    "[c := ⟦NPU101:torch.cuda⟧ for i in x]\n⟦NPU101:c.synchronize⟧()",
    "def f():\n    return (c := ⟦NPU101:torch.cuda⟧), ⟦NPU101:c.synchronize⟧()",
    # rebinding; where a name may be something else, only its binding is reported
    "c = ⟦NPU101:torch.cuda⟧\nc = 3\nc.synchronize()",
    "c = 3\nc = ⟦NPU101:torch.cuda⟧\n⟦NPU101:c.synchronize⟧()",
    "c = ⟦NPU101:torch.cuda⟧\n⟦NPU101:c.synchronize⟧()\nc = 3\nc.synchronize()",
    "c = ⟦NPU101:torch.cuda⟧\nif x:\n    c = 3\nc.synchronize()",
    "if a:\n    c = ⟦NPU101:torch.cuda⟧\nelse:\n    c = 3\nc.synchronize()",
    "if a:\n    c = ⟦NPU101:torch.cuda⟧\n    ⟦NPU101:c.synchronize⟧()\nelse:\n    c = 3\n"
    "    c.synchronize()",
    "c = ⟦NPU101:torch.cuda⟧\ndel c\nc.synchronize()",
    "c = ⟦NPU101:torch.cuda⟧\nfor c in xs:\n    c.synchronize()",
    "for i in xs:\n    c = ⟦NPU101:torch.cuda⟧\n⟦NPU101:c.synchronize⟧()",
    "while x:\n    ⟦NPU101:c.synchronize⟧()\n    c = ⟦NPU101:torch.cuda⟧",
    "def f():\n    if x:\n        c = None\n    else:\n        c = ⟦NPU101:torch.cuda⟧\n"
    "    ⟦NPU101:c.synchronize⟧()",
    # a function sees what a name of the module is when it runs
    "def f():\n    ⟦NPU101:c.synchronize⟧()\nc = ⟦NPU101:torch.cuda⟧",
    "c = 3\ndef f():\n    ⟦NPU101:c.synchronize⟧()\nc = ⟦NPU101:torch.cuda⟧",
    "def f():\n    c = ⟦NPU101:torch.cuda⟧\n    def g():\n        ⟦NPU101:c.synchronize⟧()\n"
    "    return g",
    "def f():\n    def g():\n        ⟦NPU101:c.synchronize⟧()\n    c = ⟦NPU101:torch.cuda⟧",
    "def f():\n    c = ⟦NPU101:torch.cuda⟧\ndef g():\n    c.synchronize()",
    "def f():\n    c = ⟦NPU101:torch.cuda⟧\n    def g(c):\n        c.synchronize()",
    "def f():\n    if (c := ⟦NPU101:torch.cuda⟧):\n        pass\n    ⟦NPU101:c.synchronize⟧()",
    "def f():\n    c = ⟦NPU101:torch.cuda⟧\n    d = c\n    x = 1\n    ⟦NPU101:d.synchronize⟧()",
    "def f():\n    global c\n    c = ⟦NPU101:torch.cuda⟧\ndef g():\n    ⟦NPU101:c.synchronize⟧()",
    "c = None\ndef f():\n    global c\n    c = ⟦NPU101:torch.cuda⟧\n    ⟦NPU101:c.synchronize⟧()",
    "c = ⟦NPU101:torch.cuda⟧\ndef f():\n    global c\n    ⟦NPU101:c.synchronize⟧()",
    "def f():\n    c = None\n    def g():\n        nonlocal c\n        c = ⟦NPU101:torch.cuda⟧\n"
    "    g()\n    c.synchronize()",
    "def f():\n    c = ⟦NPU101:torch.cuda⟧\n    def g():\n        nonlocal c\n"
    "        ⟦NPU101:c.synchronize⟧()",
    # default arguments, lambdas, comprehensions, decorators
    "f = lambda s=⟦NPU101:torch.cuda.synchronize⟧: s()",
    "def f(c=⟦NPU101:torch.cuda⟧):\n    c.synchronize()",
    "@⟦NPU301:torch.cuda.amp.custom_fwd⟧\ndef f(): ...",
    "@⟦NPU301:torch.cuda.amp.autocast⟧()\nclass A: ...",
    "class A:\n    @⟦NPU301:torch.cuda.amp.autocast⟧()\n    def f(self): ...",
    "[⟦NPU101:torch.cuda.synchronize⟧() for i in x]",
    "[i for i in range(⟦NPU101:torch.cuda.device_count⟧())]",
    "{i: 1 for i in x if ⟦NPU101:torch.cuda.is_available⟧()}",
    "[torch for torch in [⟦NPU101:torch.cuda⟧]]",
    "c = ⟦NPU101:torch.cuda⟧\n[⟦NPU101:c.synchronize⟧() for i in x]\n[c.x for c in y]\n"
    "⟦NPU101:c.synchronize⟧()",
    "class A(metaclass=⟦NPU101:torch.cuda.Stream⟧): ...",
    "class A(⟦NPU202:torch.nn.DataParallel⟧): ...",
    # members (FN-09)
    "class A:\n    t = torch\n    def f(self):\n        ⟦NPU101:self.t.cuda.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\n    def f(me):\n        ⟦NPU101:me.t.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\n⟦NPU101:A.t.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\na = A()\n⟦NPU101:a.t.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\n    ⟦NPU101:t.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\n    def f(self):\n        t.synchronize()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\n    @classmethod\n    def f(cls):\n"
    "        ⟦NPU101:cls.t.synchronize⟧()",
    "class A:\n    def __init__(self):\n        self.c = ⟦NPU101:torch.cuda⟧\n    def f(self):\n"
    "        ⟦NPU101:self.c.synchronize⟧()",
    "class A:\n    def f(self):\n        ⟦NPU101:self.c.synchronize⟧()\n    def __init__(self):\n"
    "        self.c = ⟦NPU101:torch.cuda⟧",
    "class A:\n    def __init__(self, c):\n        self.c = c\n    def f(self):\n"
    "        self.c.synchronize()",
    "class B:\n    t = ⟦NPU101:torch.cuda⟧\nclass A(B):\n    def f(self):\n"
    "        ⟦NPU101:self.t.synchronize⟧()",
    "class A:\n    t = ⟦NPU101:torch.cuda⟧\nclass B:\n    def f(self):\n"
    "        self.t.synchronize()",
    # FN-01: a reference counts, not only a call
    "W = ⟦NPU202:torch.nn.DataParallel⟧ if a else DDP\nW(m)",
    "isinstance(m, ⟦NPU202:torch.nn.DataParallel⟧)",
    "isinstance(m, (A, ⟦NPU202:torch.nn.DataParallel⟧))",
    "def f(m: ⟦NPU202:torch.nn.DataParallel⟧): ...",
    "def f() -> ⟦NPU101:torch.cuda.Stream⟧: ...",
    "s: ⟦NPU101:torch.cuda.Stream⟧ = None",
    "W = {'g': ⟦NPU202:torch.nn.DataParallel⟧}\nW['g'](m)",
    "w = ⟦NPU202:torch.nn.DataParallel⟧\nw(m)",
    # every place an expression can have
    "try:\n    pass\nexcept ⟦NPU101:torch.cuda.OutOfMemoryError⟧ as e:\n    pass",
    "try:\n    pass\nexcept (RuntimeError, ⟦NPU101:torch.cuda.OutOfMemoryError⟧):\n    pass",
    "raise ⟦NPU101:torch.cuda.OutOfMemoryError⟧('x')",
    "with ⟦NPU101:torch.cuda.device⟧(0), ⟦NPU101:torch.cuda.stream⟧(s):\n    pass",
    "async def f():\n    async with ⟦NPU101:torch.cuda.stream⟧(s):\n        pass",
    "match ⟦NPU101:torch.cuda.device_count⟧():\n"
    "    case n if ⟦NPU101:torch.cuda.is_available⟧():\n        pass",
    "match x:\n    case ⟦NPU101:torch.cuda.Stream⟧():\n        pass",
    "x[⟦NPU101:torch.cuda.current_device⟧():⟦NPU101:torch.cuda.device_count⟧()]",
    "x = {**⟦NPU101:torch.cuda.memory_stats⟧()}, [*⟦NPU101:torch.cuda.memory_stats⟧()]",
    "f(*⟦NPU101:torch.cuda.memory_stats⟧(), **⟦NPU101:torch.cuda.memory_stats⟧())",
    "def f():\n    yield ⟦NPU101:torch.cuda.synchronize⟧()",
    "assert ⟦NPU101:torch.cuda.is_available⟧()",
    "del x[⟦NPU101:torch.cuda.current_device⟧()]",
    "x = f'{⟦NPU101:torch.cuda.device_count⟧()}'",
    "⟦NPU101:torch.cuda.synchronize⟧ = lambda: None",
    "⟦NPU101:(torch.cuda).synchronize⟧",
]


@pytest.mark.parametrize("snippet", IMPORTS)
def test_imports(snippet: str) -> None:
    check(snippet + "\n")


@pytest.mark.parametrize("snippet", ALIASES)
def test_aliases_and_scopes(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


def test_a_name_from_a_star_import_may_come_from_torch_cuda() -> None:
    source = "from torch.cuda import *\nsynchronize()\nprint(len(x))\n"
    (star,) = findings(source)
    assert star.rule.code == "NPU101"
    assert fixed(source) == "from torch_npu.npu import *\nsynchronize()\nprint(len(x))\n"


# A fix puts the name right where it is bound, and leaves what is done with it.
REPAIRED = [
    ("dev = torch.cuda\ndev.synchronize()", "dev = torch.npu\ndev.synchronize()"),
    (
        "c = torch.cuda if a else torch.xpu\nc.synchronize()",
        "c = torch.npu if a else torch.xpu\nc.synchronize()",
    ),
    (
        "if a:\n    c = torch.cuda\nelse:\n    c = torch.xpu\nc.synchronize()",
        "if a:\n    c = torch.npu\nelse:\n    c = torch.xpu\nc.synchronize()",
    ),
    (
        "def f(c=torch.cuda):\n    c.synchronize()",
        "def f(c=torch.npu):\n    c.synchronize()",
    ),
    (
        "c = a or torch.cuda\nc.synchronize()",
        "c = a or torch.npu\nc.synchronize()",
    ),
    (
        "class A:\n    def __init__(self):\n        self.c = torch.cuda\n"
        "    def f(self):\n        self.c.synchronize()",
        "class A:\n    def __init__(self):\n        self.c = torch.npu\n"
        "    def f(self):\n        self.c.synchronize()",
    ),
    bug(
        "a class member is spelled out where it is used",
        "class A:\n    t = torch.cuda\n    def f(self):\n        self.t.synchronize()",
        "class A:\n    t = torch.npu\n    def f(self):\n        self.t.synchronize()",
    ),
    (
        "class A:\n    t = torch\n    def f(self):\n        self.t.cuda.synchronize()",
        "class A:\n    t = torch\n    def f(self):\n        self.t.npu.synchronize()",
    ),
    ("(torch.cuda).synchronize()", "torch.npu.synchronize()"),
    ("getattr(torch, 'cuda').synchronize()", "torch.npu.synchronize()"),
    ("torch.cuda.synchronize = lambda: None", "torch.npu.synchronize = lambda: None"),
    ("x = torch.cuda.Event(enable_timing=True)", "x = torch.npu.Event(enable_timing=True)"),
    ("torch.cuda.nvtx.range_push('x')", "torch.npu.mstx.range_push('x')"),
]


@pytest.mark.parametrize(("before", "after"), REPAIRED)
def test_a_name_is_repaired_where_it_is_bound(before: str, after: str) -> None:
    assert (
        fixed(f"import torch\n{before}\n")
        == f"import torch\nimport torch_npu  # noqa: F401\n{after}\n"
    )


def test_a_name_under_type_checking_only_is_not_imported_at_run_time() -> None:
    source = (
        "from typing import TYPE_CHECKING\nfrom torch import nn\n\nif TYPE_CHECKING:\n"
        "    import torch\n\n\ndef f(x: 'torch.Tensor', m: nn.Module):\n    return m.cuda()\n"
    )
    assert "from torch import nn\nimport torch_npu  # noqa: F401\n" in fixed(source)


ORDERS = [
    "try:\n    from torch.nn import DataParallel as W\nexcept ImportError:\n"
    "    from lib import W\nW(m)",
    "try:\n    from torch.cuda import synchronize as s\nexcept ImportError:\n"
    "    from lib import s\ns()",
    "if x:\n    c = torch.cuda\nelif y:\n    c = lib\nelse:\n    c = other\nc.synchronize()",
]


def test_the_answer_does_not_depend_on_hash_seeds() -> None:
    program = (
        "from helpers import marks\nfrom test_names import ORDERS\n"
        "for order in ORDERS: print(marks(f'import torch\\n{order}\\n'))"
    )
    answers = set()
    for seed in "0123":
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answers.add(run.stdout)
    assert len(answers) == 1
    assert "NPU202" in answers.pop()


def test_every_trigger_is_an_identifier_or_a_variable() -> None:
    assert all(word.removeprefix(".").isidentifier() for word in CATALOGUE.triggers)


def test_marks_are_read_and_written_alike() -> None:
    for case in IMPORTS + ALIASES:
        snippet = case if isinstance(case, str) else case.values[0]
        assert marked(*unmarked(snippet)) == snippet
        assert marks("") == []
