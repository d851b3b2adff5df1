"""All faces count the same findings under the same names."""

import json
import re
from pathlib import Path

import pytest

from commands import invoke
from lsp_client import LspClient

TRAIN = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        x = x[x > 0]
        return x.cuda().sum()


def main(model: Net, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return torch.cuda.nvtx.range_push("x")
"""
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": ["import torch\n", "torch.ones(1).cuda()"],
        },
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
PULLS = {"textDocument": {"diagnostic": {}}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "look.ipynb").write_text(json.dumps(NOTEBOOK))
    return folder


def run(*arguments: object) -> str:
    return invoke(*(str(each) for each in arguments))[1]


def told(text: str) -> tuple[int, int]:
    """The problems and the pieces of advice that a line tells."""
    problems = re.search(r"(\d+) problem", text)
    advice = re.search(r"(\d+) pieces? of advice", text)
    return int(problems[1]) if problems else 0, int(advice[1]) if advice else 0


def in_editor(folder: Path) -> tuple[int, int]:
    """What the view and the item in the status bar count, in all files, none of which is open."""
    with LspClient() as client:
        client.initialize(capabilities=PULLS, rootUri=folder.as_uri())
        answer = client.request("workspace/diagnostic", {"previousResultIds": []})
        found = [item["data"]["isProblem"] for file in answer["items"] for item in file["items"]]
    return found.count(True), found.count(False)


def test_all_faces_count_the_same(project: Path) -> None:
    found = told(run("check", project).splitlines()[-1])
    assert found[0] > 0 and found[1] > 0
    assert told(run("check", "--statistics", project).splitlines()[-1]) == found
    assert in_editor(project) == found


def test_a_report_counts_what_a_check_counts(project: Path) -> None:
    text = run("report", project, "--format", "markdown")
    families = text[text.index("### Families") :].splitlines()
    rows = [line.split("|") for line in families if line.startswith("|")][2:]
    assert sum(int(row[2]) for row in rows) == sum(told(run("check", project).splitlines()[-1]))


def test_what_a_migration_leaves_is_what_a_check_of_it_finds(project: Path) -> None:
    """A dynamic shape is advice in both, whatever its severity."""
    target = project.parent / "migrated"
    lines = run("migrate", project, "-o", target).splitlines()
    (last,) = (line for line in lines if line.startswith("Left to do: "))
    assert told(last) == told(run("check", target).splitlines()[-1]) == in_editor(target)
    assert told(last)[1] > 0


def test_the_line_above_a_file_counts_alike(project: Path) -> None:
    with LspClient() as client:
        client.initialize(rootUri=project.as_uri())
        uri = (project / "train.py").as_uri()
        client.open(uri, TRAIN)
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    title = lenses[0]["command"]["title"]
    problems, advice = told(run("check", project / "train.py").splitlines()[-1])
    assert f"{problems} problems" in title and title.endswith(f"advice: {advice}")
