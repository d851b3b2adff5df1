"""Waits cost nothing in scripts that name no device, and are told in all others."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens.cli.main import cli

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        y = self.layer(x)
        return y[y > 0].sum()
"""
TRAIN = """import torch
from net import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.ones(3, 4))
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
ON_CPU = TRAIN.replace("Net()\n", 'Net().to(device)\ndevice = torch.device("cpu")\n')
ON_CARD = TRAIN.replace("Net()\n", "Net().cuda()\n")
BY_OPTION = """import argparse
from net import Net

parser = argparse.ArgumentParser()
parser.add_argument("--where", dest="device")
args = parser.parse_args()
Net().to(args.device)
"""
BY_NAME = "import sys\nfrom net import Net\n\nNet().to(sys.argv[1])\n"
MODEL_ALONE, SCRIPT_ALONE, BOTH, NEITHER = {"net.py"}, {"train.py"}, {"net.py", "train.py"}, set()
PROJECTS = {
    "no device": ({}, NEITHER),
    "the CPU by name": ({"train.py": ON_CPU}, NEITHER),
    "a card": ({"train.py": ON_CARD}, BOTH),
    "another script with a card": (
        {"serve.py": "from net import Net\n\nNet().cuda()\n"},
        MODEL_ALONE,
    ),
    "a card that is commented out": ({"train.py": f"# model.cuda()\n{TRAIN}"}, BOTH),
    "an option": ({"run.py": BY_OPTION}, MODEL_ALONE),
    "an argument": ({"run.py": BY_NAME}, MODEL_ALONE),
    "a library that chooses": ({"train.py": f"import lightning\n{TRAIN}"}, BOTH),
    "a trainer of transformers": (
        {"train.py": f"from transformers import Trainer\n{TRAIN}"},
        BOTH,
    ),
    "a checkpoint of a card": ({"train.py": f'{TRAIN}\nstart = torch.load("a.pt")\n'}, BOTH),
    "a checkpoint that is copied": (
        {"train.py": f'{TRAIN}\nmodel.load_state_dict(torch.load("a.pt"))\n'},
        NEITHER,
    ),
    "a module that nothing imports": ({"more.py": "from net import Net\n"}, MODEL_ALONE),
    "a test": ({"tests/test_net.py": "from net import Net\n"}, NEITHER),
    "a test with a card": (
        {"tests/test_net.py": "from net import Net\n\n\ndef test():\n    Net().cuda()\n"},
        MODEL_ALONE,
    ),
    "a notebook": (
        {"try.ipynb": '{"cells": [{"source": ["from net import Net\\n", "Net()"]}]}'},
        MODEL_ALONE,
    ),
    "imports by made-up names": (
        {"load.py": "import importlib\n\nimportlib.import_module(input())\n"},
        BOTH,
    ),
    "a package": ({"setup.py": "setup()\n"}, BOTH),
}


def project(tmp_path: Path, name: str) -> Path:
    root = tmp_path / "project"
    for path, text in {"net.py": MODEL, "train.py": TRAIN, **PROJECTS[name][0]}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def rows(command: str, root: Path) -> list[dict[str, object]]:
    found = CliRunner().invoke(cli, [command, str(root), "--output-format", "json"])
    return [
        row
        for row in json.loads(found.stdout)
        if str(row["code"]) in ("NPU802", "NPU805", "NPU912")
    ]


@pytest.mark.parametrize("name", PROJECTS)
def test_what_stays_on_the_host_is_not_told(tmp_path: Path, name: str) -> None:
    told = rows("check", project(tmp_path, name))
    assert {Path(str(row["path"])).name for row in told} == PROJECTS[name][1]


@pytest.mark.parametrize("name", PROJECTS)
def test_the_list_says_what_stays_on_the_host(tmp_path: Path, name: str) -> None:
    found = rows("shapes", project(tmp_path, name))
    hurting = {Path(str(row["path"])).name for row in found if row["reached"] != "host"}
    assert hurting == PROJECTS[name][1]
    assert {Path(str(row["path"])).name for row in found} == BOTH
    assert all(row["score"] == 0 for row in found if row["reached"] == "host")


def test_what_stays_on_the_host_has_a_reason(tmp_path: Path) -> None:
    root = project(tmp_path, "no device")
    found = CliRunner().invoke(
        cli, ["check", str(root), "--explain-silence", "--output-format", "json"]
    )
    reasons = {row["code"]: row["reason"] for row in json.loads(found.stdout)}
    assert reasons.get("NPU802") == reasons.get("NPU912") == "on-host"
