"""Files that need not be parsed are told from their bytes, and none with findings is among them."""

import json
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Target
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.tables import Place
from npulens.text.document import Document
from npulens.workspace.files.relevance import Relevance
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

if sys.version_info >= (3, 11):
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser

USE = "x = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)\n"
WAYS = {
    "plainly": "import torch\n" + USE,
    "with others": "import os, torch\n" + USE,
    "by another name": "import torch as t\n" + USE.replace("torch.", "t."),
    "under a condition": "if True: import torch\n" + USE,
    "behind a semicolon": "import os; import torch\n" + USE,
    "indented": "try:\n    import torch\nexcept ImportError:\n    torch = None\n" + USE,
    "with carriage returns": ("import torch\n" + USE).replace("\n", "\r\n"),
    "names of it": "from torch import (\n    channels_last,\n)\n"
    + USE.replace("torch.channels_last", "channels_last"),
    "a broken program": "import torch\nx = (\n",
}


def checked(path: str, data: bytes) -> list[tuple[str, int]]:
    report = Checker(load_catalogue(), Configuration()).check_bytes(path, data)
    return [(found.rule.code, found.span.start) for found in report.findings]


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_pytorch_is_seen_however_it_is_imported(text: str) -> None:
    document = Document("model.py", text)
    found = [(f.rule.code, f.span.start) for f in analyze(document, load_catalogue(), Target())]
    assert found
    assert checked("model.py", text.encode()) == found


@pytest.mark.parametrize(
    "text",
    [
        "import ray\n@ray.remote(num_gpus=1)\nclass Worker:\n    pass\n",
        "from ray import tune\ntune.run(f, resources_per_trial={'gpu': 1})\n",
        "import os\ncards = os.environ['SLURM_GPUS_ON_NODE']\n",
        "from setuptools import setup\nsetup(install_requires=['flash-attn'])\n",
    ],
)
def test_what_needs_no_pytorch_is_read(text: str) -> None:
    assert len(checked("run.py", text.encode())) == 1


def test_a_cell_that_imports_it() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "source": ["import torch\n", USE]}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    for indent in (None, 1):
        assert checked("model.ipynb", json.dumps(notebook, indent=indent).encode())


def test_a_program_that_only_speaks_of_it_is_not_read(tmp_path: Path) -> None:
    text = '"""Returns a `torch.Tensor`.\n\n>>> import torch\n"""\n\ndef broken(:\n'
    assert not checked(str(tmp_path / "model.py"), text.encode())


HOSTILE = {
    "imports": lambda size: b"torch " + b"import " * size,
    "statements": lambda size: b"x" + b";import" * size + b" torch",
    "many lines": lambda size: b"# torch\n" * size,
}


@pytest.mark.endurance
@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_in_proportion_to_size(name: str) -> None:
    checker = Checker(load_catalogue(), Configuration())

    def cost(size: int) -> float:
        data = b"'''" + HOSTILE[name](size) + b"'''"
        start = time.process_time()
        assert checker.check_bytes("model.py", data).findings == ()
        return time.process_time() - start

    cost(1_000)
    ratios = [(cost(60_000) + 0.01) / (cost(20_000) + 0.01) for _ in range(3)]
    assert min(ratios) < 6, ratios


# Words of the tables, from the expressions for their names.


def written(expression: str) -> list[str]:
    """Names that an expression stands for: each choice, what is repeated once or not at all."""
    return _choices(parser.parse(expression))


def _choices(parts: Iterable[Any]) -> list[str]:
    texts = [""]
    for kind, value in parts:
        texts = [before + after for before in texts for after in _of_part(str(kind), value)][:400]
    return texts


def _of_part(kind: str, value: Any) -> list[str]:
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "BRANCH":
        return [each for branch in value[1] for each in _choices(branch)]
    if kind == "SUBPATTERN":
        return _choices(value[-1])
    if kind.endswith("REPEAT"):
        least, _, repeated = value
        return [*([""] if least == 0 else []), *_choices(repeated)]
    if kind == "IN":
        return [chr(each) for kind, each in value if str(kind) == "LITERAL"][:2] or ["1"]
    return [""]  # `.`, and what looks ahead


DECIDING = (Place.PACKAGE, Place.COMMAND, Place.VARIABLE, Place.TOGETHER)
"""Where the name alone may decide, and stands in the file as it is."""
WITH_OTHERS = re.compile(r"(?i)python.*|1?_ver(sion)?|\W?")
"""Releases of Python decide in files that are read in any case, others with a word beside them."""


def test_no_name_of_the_tables_is_passed_over() -> None:
    catalogue = load_catalogue()
    relevance = Relevance(catalogue, ProjectFacts())
    names = {
        name
        for place in DECIDING
        for entry in catalogue.launch_names[place].entries
        for name in written(entry.name)
    } | set(catalogue.environment)
    passed_over = {
        name
        for name in names
        if not WITH_OTHERS.fullmatch(name)
        and not relevance.may_have_findings("run.sh", name.encode())
    }
    assert len(names) > 200
    assert passed_over == set()
