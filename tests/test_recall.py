"""The script that compares findings with labelled places: lines of notebooks."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "recall.py"
SOURCE = ["import torch\n", "\n", "model.cuda()\n"]


def load_script() -> ModuleType:
    """The script, which is no package, as a module."""
    specification = importlib.util.spec_from_file_location("recall", SCRIPT)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


RECALL = load_script()


def notebook(source: list[str] | str, indent: int | None) -> str:
    """A notebook with a cell of prose and one of code."""
    prose = {"cell_type": "markdown", "metadata": {}, "source": ["of .cuda()"]}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
    return json.dumps({"cells": [prose, cell], "metadata": {}, "nbformat": 4}, indent=indent)


@pytest.mark.parametrize("source", [SOURCE, "".join(SOURCE)])
@pytest.mark.parametrize("indent", [1, None])
def test_lines_of_notebooks_are_those_of_the_file(
    tmp_path: Path, source: list[str] | str, indent: int | None
) -> None:
    text = notebook(source, indent)
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "model.cuda()" in row)
    assert RECALL.answers(tmp_path).found == {("a.ipynb", line)}


def test_lines_of_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(SOURCE), encoding="utf-8")
    assert RECALL.answers(tmp_path).found == {("a.py", 3)}
