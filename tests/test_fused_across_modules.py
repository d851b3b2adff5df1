"""Fused operators where a part of the computation is written in another module of the project."""

from pathlib import Path
from textwrap import dedent

import pytest

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Finding, Target
from npulens.text.document import Document
from npulens.workspace.project.file_context import ProjectContextProvider
from npulens.workspace.project.project_facts import project_facts

CATALOGUE = load_catalogue()
OPS = """
    import math

    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from .numbers import largest

    swish = lambda x: x * torch.sigmoid(x)


    def stable_softmax(t, dim=-1):
        t = t - t.amax(dim=dim, keepdim=True).detach()
        return t.softmax(dim=dim)


    def shifted_softmax(t, dim=-1):
        return (t - largest(t, dim)).softmax(dim=dim)


    def column_softmax(t):
        return t.softmax(dim=-2)


    calmed = lambda t: shaken(t.transpose(1, 2).transpose(1, 2))


    def shaken(t):
        return (t - t.amax(dim=-1, keepdim=True).detach()).softmax(dim=-1)


    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)


    def mirrored(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((second, first), dim=-1)


    def turned(q, k, cos, sin):
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


    def steep(x):
        return x * torch.sigmoid(2 * x)


    def root_mean(x, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


    def closed(scores, mask):
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return scores


    class Swish(nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(x)


    class Steady(nn.Module):
        def __init__(self, dim=-1):
            super().__init__()
            self.dim = dim

        def forward(self, t):
            return (t - t.max(dim=-1, keepdim=True)[0]).softmax(dim=-1)


    class Heads(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.scale = heads, (dim // heads) ** -0.5
            self.attend = nn.Softmax(dim=-1)
            self.weight, self.eps = nn.Parameter(torch.ones(dim)), 1e-6

        def weights(self, scores):
            return self.attend(scores * self.scale)
"""
NUMBERS = """
    import torch


    def largest(t, dim):
        return t.amax(dim=dim, keepdim=True).detach()
"""
ATTENDS = "class Own({base}):\n    def forward(self, q, k, v, mask=None):\n        {body}\n"
SCORES = "q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5"
GATES = """class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.act = nn.Linear(8, 8), nn.Linear(8, 8), {act}

    def forward(self, x):
        return {activated} * self.up(x)
"""


def attends(softmax: str, base: str = "nn.Module") -> str:
    return ATTENDS.format(base=base, body=f"return {softmax} @ v")


def project(folder: Path, imports: str, using: str) -> Path:
    """A package whose `model` uses something of `ops`."""
    package = folder / "pack"
    package.mkdir()
    (folder / "pyproject.toml").touch()
    (package / "__init__.py").touch()
    (package / "ops.py").write_text(dedent(OPS), encoding="utf-8")
    (package / "numbers.py").write_text(dedent(NUMBERS), encoding="utf-8")
    used = "from .model import Own, turn\n\nprint(Own, turn)\n"
    (package / "run.py").write_text(used, encoding="utf-8")
    file = package / "model.py"
    file.write_text(f"import torch\nfrom torch import nn\n{imports}\n\n\n{using}", encoding="utf-8")
    return file


def codes(file: Path) -> list[str]:
    return [each.rule.code for each in told(file, context(file))]


def context(file: Path) -> Target:
    files = sorted(file.parent.glob("*.py"))
    facts = project_facts(files, [file.parents[1]], CATALOGUE)
    return Target(project=facts)


def told(file: Path, target: Target) -> list[Finding]:
    document = Document(str(file), file.read_text(encoding="utf-8"))
    found = analyze(document, CATALOGUE, target)
    return [each for each in found if each.rule.code.startswith("NPU7")]


@pytest.mark.parametrize(
    ("imports", "using", "expected"),
    [
        ("from .ops import stable_softmax", attends(f"stable_softmax({SCORES})"), ["NPU707"]),
        ("from pack.ops import stable_softmax as s", attends(f"s({SCORES}, -1)"), ["NPU707"]),
        ("from . import ops", attends(f"ops.stable_softmax({SCORES})"), ["NPU707"]),
        ("import pack.ops as o", attends(f"o.stable_softmax({SCORES})"), ["NPU707"]),
        ("from .ops import *", attends(f"stable_softmax({SCORES})"), ["NPU707"]),
        ("from .ops import shifted_softmax", attends(f"shifted_softmax({SCORES})"), ["NPU707"]),
        ("from .ops import calmed", attends(f"calmed({SCORES})"), ["NPU707"]),
        ("from .ops import column_softmax", attends(f"column_softmax({SCORES})"), []),
        ("from .ops import closed", attends(f"closed({SCORES}, mask).softmax(-1)"), ["NPU707"]),
        ("from .ops import Heads", attends("self.weights(q @ k.mT)", "Heads"), ["NPU707"]),
        ("from . import ops", attends("self.attend(q @ k.mT)", "ops.Heads"), ["NPU707"]),
        (
            "from .ops import rotate_half",
            "def turn(x, cos, sin):\n    return x * cos + rotate_half(x) * sin\n",
            ["NPU706"],
        ),
        (
            "from .ops import mirrored",
            "def turn(x, cos, sin):\n    return x * cos + mirrored(x) * sin\n",
            [],
        ),
        (
            "from .ops import swish",
            GATES.format(act="None", activated="swish(self.gate(x))"),
            ["NPU703"],
        ),
        (
            "from .ops import swish",
            GATES.format(act="swish", activated="self.act(self.gate(x))"),
            ["NPU703"],
        ),
        (
            "from .ops import Swish",
            GATES.format(act="Swish()", activated="self.act(self.gate(x))"),
            ["NPU703"],
        ),
        (
            "from .ops import steep",
            GATES.format(act="None", activated="steep(self.gate(x))"),
            [],
        ),
        (
            "from .ops import Heads, root_mean",
            "class Own(Heads):\n    def forward(self, x):\n"
            "        return root_mean(x, self.eps) * self.weight\n",
            ["NPU701"],
        ),
    ],
)
def test_what_another_module_computes_counts(
    tmp_path: Path, imports: str, using: str, expected: list[str]
) -> None:
    assert codes(project(tmp_path, imports, using)) == expected


def test_what_another_module_holds_alone_is_told_there(tmp_path: Path) -> None:
    using = "def turn(q, k, cos, sin):\n    q, k = turned(q, k, cos, sin)\n    return q @ k\n"
    file = project(tmp_path, "from .ops import turned", using)
    assert codes(file) == []
    assert "NPU706" in codes(file.with_name("ops.py"))


def test_a_module_of_an_instance_is_looked_into(tmp_path: Path) -> None:
    using = (
        "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.steady = Steady()\n\n    def forward(self, q, k, v):\n"
        f"        return self.steady({SCORES}) @ v\n"
    )
    assert codes(project(tmp_path, "from .ops import Steady", using)) == ["NPU707"]


def test_a_name_of_another_module_is_not_written(tmp_path: Path) -> None:
    """A number that the other module knows has no name here."""
    file = project(tmp_path, "from .ops import scaled", attends("scaled(q @ k.mT)"))
    ops = file.with_name("ops.py")
    text = f"{dedent(OPS)}\nHEAT = 0.5\n\n\ndef scaled(t):\n    return (t * HEAT).softmax(dim=-1)\n"
    ops.write_text(text, encoding="utf-8")
    (found,) = told(file, context(file))
    assert not any("HEAT" in edit.text for fix in found.fixes for edit in fix.edits)


def test_names_that_modules_have_from_each_other_end_somewhere(tmp_path: Path) -> None:
    file = project(tmp_path, "from .ops import one", attends(f"one({SCORES})"))
    file.with_name("ops.py").write_text(
        "import torch\nfrom .numbers import two\n\n\ndef one(t):\n    return two(t).softmax(-1)\n"
    )
    file.with_name("numbers.py").write_text(
        "import torch\nfrom .ops import one\n\n\ndef two(t):\n    return one(t).view(1)\n"
    )
    assert codes(file) in ([], ["NPU719"])


def test_a_change_of_the_other_module_counts_at_once(tmp_path: Path) -> None:
    file = project(
        tmp_path, "from .ops import stable_softmax", attends(f"stable_softmax({SCORES})")
    )
    provider = ProjectContextProvider()
    ops = file.with_name("ops.py")
    found = []
    for text in (dedent(OPS), dedent(OPS).replace("t.softmax(dim=dim)", "t.softmax(dim=-2)")):
        ops.write_text(text, encoding="utf-8")
        provider.forget_projects()
        look = provider.look(file, tmp_path)
        found.append([each.rule.code for each in told(file, look.target)])
    assert found == [["NPU707"], []]
