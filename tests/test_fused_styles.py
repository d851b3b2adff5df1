"""Computations in the styles of public code: which are found, which are left alone."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Finding, Target
from npulens.text.document import Document

CATALOGUE = load_catalogue()
FOLDER = Path(__file__).parent / "data" / "fused_styles"
MARK = re.compile(r"#\s*((?:NPU\d{3}\|?)+)\s*$")
FUSED = re.compile(r"NPU7[01]\d")


class Style(NamedTuple):
    """A definition, its lines, and the rules of which one has to be found in it."""

    file: str
    name: str
    lines: tuple[int, int]
    wanted: frozenset[str]


def styles() -> list[Style]:
    found = []
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                marked = MARK.search(text.splitlines()[node.lineno - 1])
                wanted = frozenset(marked[1].split("|")) if marked else frozenset()
                lines = node.lineno, node.end_lineno or node.lineno
                found.append(Style(path.name, node.name, lines, wanted))
    return found


@pytest.fixture(scope="module")
def findings() -> dict[str, list[tuple[int, Finding]]]:
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        document = Document(path.name, path.read_text(encoding="utf-8"))
        found[path.name] = [
            (document.text.count("\n", 0, each.span.start) + 1, each)
            for each in analyze(document, CATALOGUE, Target())
            if FUSED.fullmatch(each.rule.code)
        ]
    return found


@pytest.mark.parametrize("style", styles(), ids=lambda style: style.name)
def test_a_style_is_recognised(
    style: Style, findings: dict[str, list[tuple[int, Finding]]]
) -> None:
    first, last = style.lines
    codes = {each.rule.code for line, each in findings[style.file] if first <= line <= last}
    assert bool(codes & style.wanted) == bool(style.wanted), codes
    assert codes <= style.wanted | {"NPU710"} if style.wanted else not codes
