"""Modules of PyTorch that come from other modules of the project."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import CATALOGUE
from lsp_client import LspClient
from npulens.analysis import judge
from npulens.catalog.model import Target
from npulens.cli.main import cli
from npulens.text.document import Document

COMMON = """import torch
import torch.nn.functional as F
import torch.cuda as gpu
import torch.distributed as dist
from torch import nn
"""
PACKAGE = {
    "pyproject.toml": "",
    "pack/__init__.py": "from .common import torch, nn\n",
    "pack/common.py": COMMON,
    "pack/listed.py": f"{COMMON}__all__ = ['nn']\n",
    "pack/inner/__init__.py": "from ..common import *\n",
    "pack/further.py": "from pack.inner import *\n",
    "pack/render.py": "import nvdiffrast.torch as dr\n",
    "pack/twice.py": "import torch\n\nif FLAG:\n    import paddle as torch\n",
    "other/__init__.py": "",
    "other/torch.py": "import torch as cuda\n",
}
WAIT = "\n\ndef wait() -> None:\n    torch.cuda.synchronize()\n"
WAITS = ["NPU101"]
MODEL = "\n\ndef shared(x):\n    return nn.DataParallel(x)\n"
SHARES = ["NPU202"]
# Where another module stands, what it holds, and what is found in it.
CASES = {
    "by name": ("run.py", f"from pack.common import torch{WAIT}", WAITS),
    "by another name": (
        "run.py",
        f"from pack.common import torch as t{WAIT.replace('torch.', 't.')}",
        WAITS,
    ),
    "relative": ("pack/run.py", f"from .common import torch{WAIT}", WAITS),
    "from above": ("pack/inner/run.py", f"from ..common import nn, torch{MODEL}", SHARES),
    "all": ("pack/run.py", f"from .common import *{WAIT}{MODEL}", WAITS + SHARES),
    "all, absolute": ("run.py", f"from pack.common import *{WAIT}", WAITS),
    "handed on by the package": ("run.py", f"from pack import torch{WAIT}", WAITS),
    "re-exported by name": ("run.py", f"from pack.further import torch{WAIT}", WAITS),
    "all, of what takes all": ("pack/run.py", f"from .inner import *{WAIT}", WAITS),
    "all, through three modules": ("run.py", f"from pack.further import *{WAIT}", WAITS),
    "all that is listed": ("pack/run.py", f"from .listed import *{WAIT}{MODEL}", SHARES),
    "told where it is imported first": (
        "pack/run.py",
        "from .common import gpu, torch\n\n\ndef wait() -> None:\n    gpu.synchronize()\n",
        [],
    ),
    "a module of that name": ("other/run.py", f"from . import torch{WAIT}", []),
    "it may be another framework": ("pack/run.py", f"from .twice import torch{WAIT}", []),
    "another library": ("run.py", f"from elsewhere import torch{WAIT}", []),
    "its own name comes first": (
        "pack/run.py",
        f"from .common import *\nimport paddle as torch{WAIT}",
        [],
    ),
}


@pytest.mark.parametrize(("where", "text", "told"), CASES.values(), ids=CASES)
def test_what_is_told(where: str, text: str, told: list[str], tmp_path: Path) -> None:
    write(tmp_path, where, text)
    assert checked(tmp_path, where) == told


def test_a_library_that_another_module_imports_is_reported_there(tmp_path: Path) -> None:
    draw = "from pack.render import *\n\n\ndef draw(x):\n    x.cuda()\n    return dr.rasterize(x)\n"
    write(tmp_path, "run.py", draw)
    assert checked(tmp_path, "run.py") == ["NPU105"]
    assert checked(tmp_path, "pack/render.py") == ["NPU602"]
    explained = CliRunner().invoke(cli, ["explain", f"{tmp_path}/run.py:6"]).stdout
    assert "reported-at-import" in explained and "`dr`" in explained


SPARSE = """import spconv
if float(spconv.__version__[2:]) >= 2.2:
    spconv.constants.TABLE = False
try:
    import spconv.pytorch as spconv
except ImportError:
    import spconv as spconv
"""


@pytest.mark.parametrize("module", [".sparse", "pack.sparse"])
def test_a_library_that_is_imported_by_name_has_a_reason(module: str, tmp_path: Path) -> None:
    text = f"import torch\nfrom {module} import spconv\n\nlayer = spconv.SubMConv2d(1, 2, 3)\n"
    write(tmp_path, "pack/run.py", text)
    (tmp_path / "pack/sparse.py").write_text(SPARSE)
    assert checked(tmp_path, "pack/run.py") == []
    explained = CliRunner().invoke(cli, ["explain", f"{tmp_path}/pack/run.py:2"]).stdout
    assert "reported-at-import" in explained


def test_beside_sources_of_cuda(tmp_path: Path) -> None:
    write(tmp_path, "run.py", f"from pack.common import torch{WAIT}")
    (tmp_path / "kernel.cu").write_text("__global__ void f() {}\n")
    assert checked(tmp_path, "run.py") == WAITS


def test_in_an_editor(tmp_path: Path) -> None:
    text = f"from .common import *{WAIT}"
    write(tmp_path, "pack/run.py", text)
    uri = (tmp_path / "pack/run.py").as_uri()
    with LspClient() as client:
        client.initialize(rootUri=tmp_path.as_uri())
        client.open(uri, text)
        (found,) = client.diagnostics(uri, 1)
        assert found["code"] == "NPU101"
        client.shut_down()


def write(folder: Path, where: str, text: str) -> None:
    for name, content in {**PACKAGE, where: text}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def checked(folder: Path, where: str) -> list[str]:
    """The codes of what is found in a file, the whole folder being checked."""
    command = ["check", "--no-cache", "--output-format", "json", str(folder)]
    told = json.loads(CliRunner().invoke(cli, command).stdout)
    return [found["code"] for found in told if found["path"] == str(folder / where)]


def test_uses_of_a_name_that_needs_a_build_are_reported_at_its_import() -> None:
    text = "from transformers import BitsAndBytesConfig\n\nconfig = BitsAndBytesConfig(x=1)\n"
    judged = judge(Document("a.py", text), CATALOGUE, Target())
    assert [found.rule.code for found in judged.findings] == ["NPU604"]
    [use] = judged.settled
    assert use.settlement is not None
    assert use.settlement.reason == "reported-at-import"
    assert text[slice(*use.span)] == "BitsAndBytesConfig"
    assert use.span.start > text.index("\n")
