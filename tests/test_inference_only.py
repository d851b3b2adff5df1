"""RMSNorm of a residual sum is told in projects that compute no gradients."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens.cli.main import cli

BLOCK = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-5)

    def forward(self, x, residual):
        residual = residual + x
        return self.norm(residual), residual
"""
RUN = """import torch

from layers.block import Block


@torch.inference_mode()
def answer(x):
    return Block(8).npu()(x, x)


answer(torch.ones(2, 8))
"""
TOLD = ["NPU702"]
NOT_TOLD = ["NPU701"]
PROJECTS = {
    "scripts that answer": ({}, TOLD),
    "another that trains": ({"train.py": "loss.backward()\n"}, NOT_TOLD),
    "an optimizer": ({"train.py": "import torch.optim as o\n"}, NOT_TOLD),
    "a trainer of a library": ({"train.py": "from lib import Trainer\n"}, NOT_TOLD),
    "a notebook that trains": (
        {"train.ipynb": '{"cells": [{"source": ["loss.backward()\\n"]}]}'},
        NOT_TOLD,
    ),
    "a notebook too large to be read": ({"train.ipynb": " " * 2_000_001}, NOT_TOLD),
    "a notebook that answers": (
        {
            "run.py": "import layers.block\n",
            "answer.ipynb": '{"cells": [{"source": ["with torch.no_grad():\\n", "    f()"]}]}',
        },
        TOLD,
    ),
    "nothing that turns gradients off": ({"run.py": "import layers.block\n"}, NOT_TOLD),
    "a package that others may train": ({"setup.py": "setup()\n"}, NOT_TOLD),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_the_sum_counts_where_a_project_trains_nothing(tmp_path: Path, name: str) -> None:
    files, expected = PROJECTS[name]
    root = tmp_path / "project"
    (root / "layers").mkdir(parents=True)
    for path, text in {"layers/block.py": BLOCK, "run.py": RUN, **files}.items():
        (root / path).write_text(text)
    result = CliRunner().invoke(cli, ["check", str(root), "--output-format", "json"])
    rows = [row for row in json.loads(result.stdout) if row["path"].endswith("block.py")]
    assert [row["code"] for row in rows if row["code"].startswith("NPU70")] == expected
