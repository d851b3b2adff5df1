"""Methods of classes of the project that are called like those of tensors, across its modules."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_client import LspClient
from npulens.cli.main import cli

BATCHES = '''import torch


class Batch:
    """Knows how to move itself."""

    def __init__(self, x):
        self.x = x

    def cuda(self):
        self.x = self.x.cuda()
        return self


class Larger(Batch):
    pass


class Plain(torch.nn.Module):
    pass


class Model(torch.nn.Module):
    def cuda(self, device=None):
        assert not self.is_packed
        return super().cuda(device)


class Device:
    @property
    def is_cuda(self):
        return False
'''
MOVING = "def cuda(things):\n    return [each.cuda() for each in things]\n"
PACKAGE = {
    "pack/__init__.py": "from .batches import Batch\nfrom .moving import cuda\n",
    "pack/batches.py": BATCHES,
    "pack/moving.py": MOVING,
}
# What a module beside the package holds, and what of it is told of.
CASES = {
    "called with its name": ("from pack.batches import Batch\n\nBatch(1).cuda()\n", []),
    "by a name of its own": ("from pack.batches import Batch as B\n\nb = B(1)\nb.cuda()\n", []),
    "by its module": ("from pack import batches\n\nbatches.Batch(1).cuda()\n", []),
    "by the package": ("import pack\n\npack.Batch(1).cuda()\n", []),
    "handed on by the package": ("from pack import Batch\n\nBatch(1).cuda()\n", []),
    "moved again": ("from pack import Batch\n\nb = Batch(1)\nb = b.cuda()\nb.cuda()\n", []),
    "by its annotation": (
        "from pack import Batch\n\n\ndef run(batch: Batch) -> None:\n    batch.cuda()\n",
        [],
    ),
    "as an attribute": (
        "from pack import Batch\n\n\nclass A:\n    def __init__(self):\n"
        "        self.b = Batch(1)\n\n    def go(self):\n        self.b.cuda()\n",
        [],
    ),
    "a function of a module": ("from pack import moving\n\nmoving.cuda([1])\n", []),
    "a function of the package": ("import pack\n\npack.cuda([1])\n", []),
    "no function of the package": ("import pack\n\npack.batch.cuda()\n", ["3:12"]),
    "inherited there": ("from pack.batches import Larger\n\nLarger(1).cuda()\n", []),
    "inherited here": (
        "from pack import Batch\n\n\nclass Mine(Batch):\n    def go(self):\n"
        "        self.cuda()\n\n\nMine(1).cuda()\n",
        [],
    ),
    "extended here": (
        "from pack import Batch\n\n\nclass Mine(Batch):\n    def cuda(self):\n"
        "        return super().cuda()\n",
        [],
    ),
    "a property": ("from pack.batches import Device\n\nprint(Device().is_cuda)\n", []),
    "another property": ("from pack import Batch\n\nprint(Batch(1).is_cuda)\n", ["3:16"]),
    "a module of PyTorch": ("from pack.batches import Plain\n\nPlain().cuda()\n", ["3:9"]),
    "a model that looks first": ("from pack.batches import Model\n\nModel().cuda()\n", ["3:9"]),
    "what it holds": ("from pack import Batch\n\nBatch(1).x.cuda()\n", ["3:12"]),
    "a class of the same name": ("from torchtext.data import Batch\n\nBatch(1).cuda()\n", ["3:10"]),
    "not known": ("from pack import Batch\n\nfor b in load():\n    b.cuda()\n", ["4:7"]),
}


def project(root: Path, module: str) -> Path:
    for name, text in {"pyproject.toml": "", "main.py": module, **PACKAGE}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("name", CASES)
def test_methods_of_other_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, expected = CASES[name]
    monkeypatch.chdir(project(tmp_path, "import torch\n" + module))
    arguments = ["--no-cache", "--select", "NPU105,NPU106", "--output-format", "json", "."]
    told = json.loads(CliRunner().invoke(cli, ["check", *arguments]).output)
    here = [each for each in told if each["path"] == "main.py"]
    places = [f"{each['line'] - 1}:{each['column']}" for each in here]
    assert places == expected


@pytest.mark.parametrize(
    ("imports", "applicability"),
    {
        "one that moves itself": ("from pack import Batch", "unsafe"),
        "its module": ("from pack import batches", "unsafe"),
        "another": ("from pack.batches import Plain", "safe"),
    }.values(),
)
def test_a_fix_is_safe_only_if_it_is_no_such_class(
    tmp_path: Path, imports: str, applicability: str
) -> None:
    root = project(tmp_path, f"import torch\n{imports}\n\nfor b in load():\n    b.cuda()\n")
    arguments = ["--no-cache", "--select", "NPU105", "--output-format", "json", str(root)]
    told = json.loads(CliRunner().invoke(cli, ["check", *arguments]).output)
    (found,) = [each for each in told if each["path"].endswith("main.py")]
    assert found["fix"]["applicability"] == applicability


def test_an_editor_hears_of_a_method_that_comes(tmp_path: Path) -> None:
    text = "import torch\nfrom pack.batches import Plain\n\nPlain().cuda()\n"
    root = project(tmp_path, text)
    uri = (root / "main.py").as_uri()
    with LspClient() as client:
        client.initialize(rootUri=root.as_uri())
        client.open(uri, text)
        assert [found["code"] for found in client.diagnostics(uri, 1)] == ["NPU105"]
        module = root / "pack" / "batches.py"
        method = "class Plain(torch.nn.Module):\n    def cuda(self):\n        return self"
        module.write_text(BATCHES.replace("class Plain(torch.nn.Module):\n    pass", method))
        client.published.clear()
        event = {"uri": module.as_uri(), "type": 2}
        client.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
        assert client.diagnostics(uri, 1) == []
