"""What nothing of a project uses: dynamic shapes are left out there, other findings can wait."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens.cli.main import cli

LOSS = """import torch
from torch import Tensor, nn


class TriedLoss(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        super(TriedLoss, self).__init__()
        return x[x > 0].sum()


class UsedLoss(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 1].sum()
"""
TRAIN = "from utils.loss import UsedLoss\n\nloss = UsedLoss()\n"
PROJECTS = {
    "scripts": ({}, LOSS, ["UsedLoss"]),
    "named in settings": ({"model.yaml": "loss: TriedLoss\n"}, LOSS, ["TriedLoss", "UsedLoss"]),
    "named by another module": (
        {"other.py": "from utils import loss\n\nmade = loss.TriedLoss()\n"},
        LOSS,
        ["TriedLoss", "UsedLoss"],
    ),
    "named further down": ({}, LOSS + "\n\nmade = TriedLoss()\n", ["TriedLoss", "UsedLoss"]),
    "a package for others": (
        {"pyproject.toml": "[project]\nname = 'losses'\n"},
        LOSS,
        ["TriedLoss", "UsedLoss"],
    ),
    "registered": (
        {},
        LOSS.replace("class Tried", "@register\nclass Tried"),
        ["TriedLoss", "UsedLoss"],
    ),
    "of an own base": ({}, LOSS.replace("(nn.Module)", "(Base)"), ["TriedLoss", "UsedLoss"]),
}


def told(paths: list[str], root: Path, command: str = "check") -> list[str]:
    """The classes in which something is told, in order."""
    result = CliRunner().invoke(
        cli, [command, *paths, "--output-format", "json"], catch_exceptions=False
    )
    rows = [row for row in json.loads(result.stdout) if row["code"] == "NPU802"]
    lines = (root / "utils" / "loss.py").read_text().splitlines()
    starts = [row.get("line") or row["location"]["row"] for row in rows]
    classes = []
    for start in sorted(starts):
        heads = [line for line in lines[:start] if line.startswith("class ")]
        classes.append(heads[-1].split()[1].partition("(")[0])
    return classes


def written(root: Path, files: dict[str, str], loss: str) -> Path:
    (root / "utils").mkdir(parents=True)
    (root / "utils" / "loss.py").write_text(loss)
    (root / "train.py").write_text(TRAIN)
    for name, text in files.items():
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("name", PROJECTS)
def test_only_what_something_uses_is_told(tmp_path: Path, name: str) -> None:
    files, loss, expected = PROJECTS[name]
    root = written(tmp_path / "project", files, loss)
    assert told([str(root)], root) == expected


def test_a_part_of_a_project_tells_nothing_of_its_use(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {}, LOSS)
    assert told([str(root / "utils")], root) == ["TriedLoss", "UsedLoss"]
    assert told([str(root / "utils" / "loss.py")], root) == ["TriedLoss", "UsedLoss"]


def test_the_ranked_list_has_unused_classes_at_its_end(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {}, LOSS)
    arguments = ["shapes", str(root), "--output-format", "json"]
    rows = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert [row["function"] for row in rows] == ["UsedLoss.forward", "TriedLoss.forward"]
    assert rows[1]["score"] < 20 < rows[0]["score"]


OLD = """from torch import Tensor


def loss(x: Tensor) -> Tensor:
    mask = x > 0
    return x[mask].sum()
"""
MOVES = """import torch


def used(x):
    return x.cuda()


def tried(x):
    return deeper(x.cuda())


def deeper(x):
    return x.cuda()


def load_small(x):
    return x.cuda()


class Kept:
    def step(self, x):
        return x.cuda()

    def step_before(self, x):
        return x.cuda()

    @staticmethod
    def guess(x):
        return x.cuda()

    def write(self, x):
        return x.cuda()

    @register(
        1,
    )
    def fancy(self, x):
        return x.cuda()

    @register(2)
    @torch.no_grad()
    def other(self, x):
        return x.cuda()
"""
RUN = "from moves import Kept, used\n\nKept().step(used(1))\n"
WAIT = {"tried", "deeper", "load_small", "step_before", "guess"}
PROJECTS_OF_FUNCTIONS = {
    "scripts": ({}, WAIT),
    "in a notebook": ({"a.ipynb": '{"cells": [], "x": "tried"}'}, WAIT - {"tried", "deeper"}),
    "in a script": ({"run.sh": "python -c 'import moves; moves.deeper(1)'\n"}, WAIT - {"deeper"}),
    "put together": ({"b.py": "f = getattr(moves, f'load_{size}')\n"}, WAIT - {"load_small"}),
    "called by a name": ({"b.py": "f = getattr(moves, args.kind)(1)\n"}, set()),
    "called by a name of a table": ({"b.py": "f = moves.__dict__[args.kind](1)\n"}, set()),
    "asked by a name": ({"b.py": "f = getattr(args, kind)\n"}, WAIT),
    "a package": ({"setup.py": "setup(name='moves')\n"}, set()),
    "settings of a tool alone": ({"setup.cfg": "[flake8]\nmax-line-length = 99\n"}, WAIT),
    "another of that name": ({"c.py": "def tried():\n    pass\n"}, WAIT),
    "two methods of one name": (
        {"c.py": "class Other:\n    def step_before(self):\n        pass\n"},
        WAIT - {"step_before"},
    ),
    "its use is a comment": ({"c.py": "# moves.tried(1)\nrun()\n"}, WAIT),
    "imported alone": ({"c.py": "from moves import (\n    tried,\n)\n\nrun()\n"}, WAIT),
    "imported by another name": (
        {"c.py": "from moves import tried as t\n\nt(1)\n"},
        WAIT - {"tried", "deeper"},
    ),
    "imported and called in one line": (
        {"c.py": "from moves import tried; tried(1)\n"},
        WAIT - {"tried", "deeper"},
    ),
    "methods called by a name": (
        {"b.py": "class Runs:\n    def run(self, kind):\n        getattr(self, kind)()\n"},
        WAIT - {"step_before", "guess"},
    ),
    "layers chosen by a name": (
        {"b.py": "import torch.nn as nn\n\nlayer = getattr(nn, args.kind)(3)\n"},
        WAIT,
    ),
    "models chosen by a name": (
        {"b.py": "from torchvision import models\n\nmodel = models.__dict__[args.arch]()\n"},
        WAIT,
    ),
    "a plain name with a default": ({"b.py": "f = getattr(moves, 'a', lambda: 1)()\n"}, WAIT),
    "a method called eval": ({"b.py": "class Net:\n    def eval(self):\n        pass\n"}, WAIT),
    "evaluated": ({"b.py": "model = eval(args.model)\n"}, set()),
    "used in what is read by its name": (
        {"hubconf.py": "import torch\nfrom moves import tried\n\nmodel = tried(1)\n"},
        WAIT - {"tried", "deeper"},
    ),
    "one of that name, used": (
        {"c.py": "from lib import tried\n\ntried()\n"},
        WAIT - {"tried", "deeper"},
    ),
}


@pytest.mark.parametrize("name", PROJECTS_OF_FUNCTIONS)
def test_findings_in_unused_functions_can_wait(tmp_path: Path, name: str) -> None:
    files, expected = PROJECTS_OF_FUNCTIONS[name]
    root = tmp_path / "project"
    root.mkdir()
    for file, text in {"moves.py": MOVES, "run.py": RUN, **files}.items():
        (root / file).write_text(text)
    result = CliRunner().invoke(cli, ["check", str(root), "--output-format", "json"])
    rows = [row for row in json.loads(result.stdout) if row["path"].endswith("moves.py")]
    assert len(rows) == MOVES.count(".cuda()")
    waiting = [row for row in rows if row["severity"] == "info"]
    lines = MOVES.splitlines()
    assert {lines[row["line"] - 2].split()[1].partition("(")[0] for row in waiting} == expected
    assert all("Nothing in this project uses" in row["message"] for row in waiting)
    assert all(row["fix"] for row in rows)


USES = {
    "nobody": ("", 0),
    "a module": ("from utils.old.loss import loss\n", 1),
    "a module beside it": ("from .old import loss\n", 1),
    "a line that goes on": ("from utils.old import other, \\\n    loss\n", 1),
    "a line that goes on behind \\r": ("from utils.old import \\\r\n    loss\r\n", 1),
    "a comment that ends so": ("from utils.old import other  # \\\nloss = 1, loss\n", 0),
    "a string": ("MODULE = 'utils.old.loss'\n", 1),
    "a command": ("# python utils/old/loss.py\n", 1),
    "names that are made up": ("import importlib\nm = importlib.import_module(name)\n", 1),
    "another of that name": ("from utils.loss import UsedLoss\n", 0),
}


@pytest.mark.parametrize("name", USES)
def test_modules_that_nothing_imports_are_not_told(tmp_path: Path, name: str) -> None:
    text, count = USES[name]
    root = written(tmp_path / "project", {"utils/more.py": text, "run.py": "main()\n"}, LOSS)
    (root / "utils" / "old").mkdir()
    (root / "utils" / "old" / "loss.py").write_text(OLD)
    result = CliRunner().invoke(cli, ["check", str(root), "--output-format", "json"])
    rows = [row for row in json.loads(result.stdout) if "old" in row["path"]]
    assert [row["code"] for row in rows] == ["NPU802"] * count


def test_modules_that_only_unused_ones_import_are_not_told(tmp_path: Path) -> None:
    files = {"utils/more.py": "from .old.loss import loss\n\ndef f(x):\n    return x.softmax(-1)\n"}
    root = written(tmp_path / "project", {**files, "run.py": "main()\n"}, LOSS)
    (root / "utils" / "old").mkdir()
    (root / "utils" / "old" / "loss.py").write_text(OLD)
    arguments = ["check", str(root), "--output-format", "json"]
    rows = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert not [row for row in rows if "old" in row["path"]]
    (root / "run.py").write_text("from utils.more import f\n\nmain(f)\n")
    rows = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert [row["code"] for row in rows if "old" in row["path"]] == ["NPU802"]


GATE = """import torch
from torch.nn import functional


def gated(gate, x):
    return functional.silu(gate) * x


def tried(gate, x):
    return functional.silu(gate) * x
"""
TRY = """

if __name__ == "__main__":
    print(tried(torch.randn(2, 4), torch.randn(2, 4)))
"""
RUN_GATES = "from gates import gated\n\nprint(gated(1, 2))\n"
GATES = {
    "nobody": (GATE, 1),
    "its module, to try it out": (GATE + TRY, 1),
    "its module, with what was stored": (GATE + TRY.replace("torch.randn(2, 4)", "load(1)"), 2),
}


@pytest.mark.parametrize("name", GATES)
def test_what_nothing_uses_gets_no_advice_on_speed(tmp_path: Path, name: str) -> None:
    text, count = GATES[name]
    root = tmp_path / "project"
    root.mkdir()
    (root / "gates.py").write_text(text)
    (root / "run.py").write_text(RUN_GATES)
    result = CliRunner().invoke(cli, ["check", str(root), "--output-format", "json"])
    rows = [row for row in json.loads(result.stdout) if row["code"] == "NPU703"]
    assert len(rows) == count


MODEL = """import torch


class Model:
    def __init__(self, net, rate):
        self.net = net.cuda()
        self.spare = torch.optim.Adam(net.parameters(), lr=rate)
        self.schedule = get_scheduler(optimizer=self.spare, rate=rate)

    def clear(self):
        self.spare.zero_grad()
        return self.spare.state_dict()
"""
STEPS = {
    "nothing": ("", 0),
    "a method": ("\n    def train(self):\n        self.spare.step()\n", 1),
    "whoever gets it": ("\n    def train(self):\n        run(self.spare)\n", 1),
    "another module": ("", 1),
}


@pytest.mark.parametrize("name", STEPS)
def test_an_optimizer_that_nothing_steps_gets_no_advice(tmp_path: Path, name: str) -> None:
    text, count = STEPS[name]
    root = tmp_path / "project"
    root.mkdir()
    step = "model.spare.step()\n" if name == "another module" else ""
    (root / "model.py").write_text(MODEL + text)
    (root / "run.py").write_text(f"from model import Model\n\nmodel = Model(1, 2)\n{step}")
    result = CliRunner().invoke(cli, ["check", str(root), "--output-format", "json"])
    rows = [row for row in json.loads(result.stdout) if row["code"] == "NPU716"]
    assert len(rows) == count
