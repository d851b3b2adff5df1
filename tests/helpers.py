"""Snippets with the findings written into them, and what becomes of them.

`x.⟦NPU105:cuda⟧()` is the source `x.cuda()` with one finding, NPU105, on the word `cuda`. Marks may
be nested and may span lines. A snippet without marks must have no finding.
"""

import ast
import textwrap
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from npulens.analysis import StatementCache, analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, Finding, MigrationStyle, Target, TorchVersion
from npulens.catalog.project_model import ProjectFacts
from npulens.fixes.apply import apply_edits, fix_text
from npulens.text.document import Document
from npulens.workspace.files.relevance import Relevance

CATALOGUE = load_catalogue()
NPU = MigrationStyle.NPU
AGNOSTIC = MigrationStyle.DEVICE_AGNOSTIC
SHIM = MigrationStyle.RUNTIME_SHIM


class Mark(NamedTuple):
    """A finding as a test writes it: offsets of code points, a rule code."""

    start: int
    end: int
    code: str


def code(snippet: str) -> str:
    """A snippet written with the indentation of the test around it."""
    return textwrap.dedent(snippet).removeprefix("\n")


def unmarked(snippet: str) -> tuple[str, list[Mark]]:
    """The source of a snippet and the findings written into it."""
    source = ""
    opened: list[tuple[int, str]] = []
    marks: list[Mark] = []
    position = 0
    while position < len(snippet):
        character = snippet[position]
        if character == "⟦":
            colon = snippet.index(":", position)
            opened.append((len(source), snippet[position + 1 : colon]))
            position = colon
        elif character == "⟧":
            start, rule = opened.pop()
            marks.append(Mark(start, len(source), rule))
        else:
            source += character
        position += 1
    assert not opened, "a mark is not closed"
    return source, sorted(marks)


def marked(source: str, marks: list[Mark]) -> str:
    """The opposite of `unmarked`, to show what was found."""
    inserted = [(m.start, 1, -m.end, f"⟦{m.code}:") for m in marks]
    inserted += [(m.end, 0, -m.start, "⟧") for m in marks]
    for place, _, _, text in sorted(inserted, reverse=True):
        source = source[:place] + text + source[place:]
    return source


def findings(
    source: str,
    style: MigrationStyle = NPU,
    torch: tuple[int, int] = (2, 8),
    cache: StatementCache | None = None,
) -> tuple[Finding, ...]:
    """What the engine says of a source."""
    target = Target(TorchVersion(*torch), style)
    return analyze(Document("snippet.py", source, 1), CATALOGUE, target, cache)


def marks(source: str, style: MigrationStyle = NPU, torch: tuple[int, int] = (2, 8)) -> list[Mark]:
    """The findings of a source as marks."""
    return sorted(Mark(*f.span, f.rule.code) for f in findings(source, style, torch))


def check(snippet: str, style: MigrationStyle = NPU, torch: tuple[int, int] = (2, 8)) -> str:
    """Assert that the engine finds what is marked and nothing else; returns the source."""
    source, expected = unmarked(snippet)
    found = marks(source, style, torch)
    assert marked(source, found) == marked(source, expected)
    kept = findings(source, style, torch, StatementCache())
    assert kept == findings(source, style, torch), "with a cache the answer is another"
    return source


def findings_in(file: str, text: str, codes: Collection[str]) -> list[Finding]:
    """The findings of some rules in a file of any kind."""
    found = analyze(Document(file, text), CATALOGUE, Target())
    return [finding for finding in found if finding.rule.code in codes]


def check_file(file: str, snippet: str, codes: Collection[str]) -> list[Finding]:
    """Assert that exactly what is marked is found, and that the file would be read."""
    text, expected = unmarked(code(snippet))
    found = findings_in(file, text, codes)
    marks = sorted(Mark(*finding.span, finding.rule.code) for finding in found)
    assert marked(text, marks) == marked(text, expected)
    if expected:
        assert Relevance(CATALOGUE, ProjectFacts()).may_have_findings(file, text.encode())
    return found


def fixed(
    source: str, style: MigrationStyle = NPU, applicability: Applicability = Applicability.UNSAFE
) -> str:
    """The source with the preferred fixes of a style, checked for what every fix promises."""
    result = fix_text(source, lambda text: findings(text, style), applicability)
    assert not result.refused, "a fix would leave code that does not parse"
    again = fix_text(result.text, lambda text: findings(text, style), applicability)
    assert again.text == result.text, "fixing twice is not the same as once"
    if parses(source):
        ast.parse(result.text)
    assert twice_imported(result.text) == twice_imported(source)
    return result.text


def parses(source: str) -> bool:
    """Whether it is Python."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def twice_imported(source: str) -> list[str]:
    """Lines `import torch_npu` that stand twice in one block."""
    twice = []
    lines = source.splitlines()
    for first, second in pairwise(lines):
        if first.strip().startswith("import torch_npu") and first == second:
            twice.append(first)
    return twice


def each_fix(source: str) -> list[tuple[str, str, str]]:
    """Every fix on offer, applied alone: style, applicability, result."""
    return [
        (fix.style.value, fix.applicability.value, apply_edits(source, fix.edits))
        for finding in findings(source)
        for fix in finding.fixes
    ]


def bug(reason: str, *case: object) -> Any:
    """A row of a table that the engine does not pass yet; it must be unwrapped once it does."""
    return pytest.param(*case, marks=pytest.mark.xfail(strict=True, reason=reason))
