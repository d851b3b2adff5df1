"""Applying edits and fixes to a text."""

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from npulens.catalog.messages import LocalizedError, message
from npulens.catalog.model import Applicability, Edit, Finding, Fix
from npulens.fixes.import_cleanup import leftovers
from npulens.fixes.imports import NOT_UNUSED, PLUGIN
from npulens.syntax.cells import python_of_notebook
from npulens.syntax.statements import parse_text
from npulens.text.kinds import Kind
from npulens.text.spans import Span

MAX_PASSES = 50
"""Each pass applies all that does not overlap; files in practice need two or three."""
_MOST_AROUND = 200
"""In code points, of a line on either side of an edit."""


class FixesNeverEndError(LocalizedError):
    """Fixes of a text give rise to each other without end; the text stays as it is."""


class AppliedEdit(NamedTuple):
    """An edit that was made.

    Attributes:
        finding: What it repaired, or helped to.
        offset: Where it is in the text that there was at first.
        before: The lines that it changed, without the last line ending; empty where it only put in
            whole lines. Of very long lines, what is around it.
        after: The same after this edit alone.
    """

    finding: Finding
    offset: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FixedText:
    """What became of a text.

    Attributes:
        applied: The findings whose fixes were applied, with their places in the text of their pass.
        refused: Findings whose fixes would have left code that does not parse; none of them is
            applied.
        edits: What was done to the text, in the order in which it was done.
    """

    text: str
    applied: tuple[Finding, ...]
    refused: tuple[Finding, ...]
    edits: tuple[AppliedEdit, ...] = ()


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits done; equal edits count once.

    Raises:
        ValueError: Two edits overlap.
    """
    segments: list[str] = []
    position = 0
    previous: Edit | None = None
    for edit in sorted(set(edits)):
        if previous is not None and edit.span.overlaps(previous.span):
            raise ValueError(f"edits overlap at {edit.span.start}")
        segments += [text[position : edit.span.start], edit.replacement]
        position, previous = edit.span.end, edit
    return "".join((*segments, text[position:]))


def compatible_findings(
    findings: Iterable[Finding], wanted: Callable[[Finding], bool]
) -> list[Finding]:
    """Findings whose first fixes can be applied together, earliest first."""
    chosen: list[Finding] = []
    taken: set[Edit] = set()
    spans: list[Span] = []
    isolated: set[str] = set()
    for finding in findings:
        if not finding.fixes or not wanted(finding):
            continue
        fix = finding.fixes[0]
        new = [edit for edit in fix.edits if edit not in taken]
        if fix.isolation in isolated or any(_touches(edit.span, spans) for edit in new):
            continue
        chosen.append(finding)
        taken.update(new)
        for edit in new:
            insort(spans, edit.span)
        if fix.isolation:
            isolated.add(fix.isolation)
    return chosen


def _touches(span: Span, spans: Sequence[Span]) -> bool:
    """Whether a span overlaps one of others, which are in order and do not overlap each other."""
    at = bisect_left(spans, span)
    return any(span.overlaps(other) for other in spans[max(at - 1, 0) : at + 1])


def fix_text(
    text: str,
    analyze: Callable[[str], Sequence[Finding]],
    applicability: Applicability,
    wanted: Callable[[Finding], bool] = lambda finding: True,
    kind: Kind = Kind.PYTHON,
) -> FixedText:
    """Apply fixes until none is left to apply.

    Args:
        text: The text.
        analyze: Gives the findings of a text, in order, with absolute spans.
        applicability: `safe` applies safe fixes only, `unsafe` both, `manual` all.
        wanted: Which findings to fix.
        kind: What the text is: only of Python it is known whether it still parses.

    Raises:
        FixesNeverEndError: There was still something to apply after `MAX_PASSES` passes.
    """
    original = text
    allowed = applicability.included
    problems = _problems(text, kind)
    applied: list[Finding] = []
    refused: list[Finding] = []
    passes: list[list[Edit]] = []
    edits: list[AppliedEdit] = []
    for _ in range(MAX_PASSES):
        findings = [f for f in analyze(text) if f.fixes and not _is_among(f, refused)]
        chosen = compatible_findings(
            findings, lambda f: f.fixes[0].applicability in allowed and wanted(f)
        )
        changed = _applied(text, chosen)
        if changed == text:
            break
        if _problems(changed, kind) > problems:
            broken = [f for f in chosen if _problems(_applied(text, [f]), kind) > problems]
            refused += broken or chosen
            continue
        applied += chosen
        edits += _traced(text, chosen, passes)
        passes.append(sorted({edit for finding in chosen for edit in finding.fixes[0].edits}))
        text = changed
    else:
        raise FixesNeverEndError(message("error.fixes-never-end", passes=MAX_PASSES))
    if applied and kind is Kind.PYTHON:
        text, edits = _without_leftovers(original, text, edits, passes)
    return FixedText(text, tuple(applied), tuple(refused), tuple(edits))


def with_leftovers(text: str, fix: Fix) -> tuple[Edit, ...]:
    """The edits of one fix of a Python module, and those that take away what it leaves needless."""
    after = apply_edits(text, fix.edits)
    edits = sorted(set(fix.edits))
    found = [edit for name, edit in leftovers(text, after) if name != PLUGIN]
    moved = (
        Edit(Span(*(offset_before(place, edits) for place in edit.span)), edit.replacement)
        for edit in found
    )
    mine = [edit.span for edit in edits]
    return (*fix.edits, *(edit for edit in moved if not _touches(edit.span, mine)))


def _without_leftovers(
    before: str, after: str, edits: list[AppliedEdit], passes: Sequence[Sequence[Edit]]
) -> tuple[str, list[AppliedEdit]]:
    """A text without the imports that its fixes left needless, and all that was done to it.

    Each import that goes belongs to a fix; what takes back a part of a fix is no edit of its own.
    """
    found = leftovers(before, after)
    if any(name == PLUGIN for name, _ in found):
        edits = [each._replace(after=each.after.replace(NOT_UNUSED, "")) for each in edits]
    removed = []
    for name, edit in found:
        if name != PLUGIN:
            word = re.compile(rf"\b{re.escape(name)}\b")
            cause = next((each for each in edits if word.search(each.before)), edits[-1])
            offset = reduce(offset_before, reversed(passes), edit.span.start)
            removed.append(AppliedEdit(cause.finding, offset, *lines_around(after, edit)))
    return apply_edits(after, (edit for _, edit in found)), [*edits, *removed]


def _problems(text: str, kind: Kind) -> int:
    if kind is Kind.NOTEBOOK:
        text = python_of_notebook(text)
    return len(parse_text(text).problems) if kind in (Kind.PYTHON, Kind.NOTEBOOK) else 0


def _applied(text: str, findings: Iterable[Finding]) -> str:
    return apply_edits(text, (edit for finding in findings for edit in finding.fixes[0].edits))


def _traced(
    text: str, findings: Iterable[Finding], passes: Sequence[Sequence[Edit]]
) -> Iterator[AppliedEdit]:
    """The edits of one pass, each once, with their places in the text before all passes.

    Where findings share a fix, an edit is that of the first that it touches, or else of the first.
    """
    owners: dict[Edit, Finding] = {}
    for finding in findings:
        for edit in finding.fixes[0].edits:
            known = owners.setdefault(edit, finding)
            if not _is_at(edit, known) and _is_at(edit, finding):
                owners[edit] = finding
    for edit, finding in owners.items():
        offset = reduce(offset_before, reversed(passes), edit.span.start)
        yield AppliedEdit(finding, offset, *lines_around(text, edit))


def _is_at(edit: Edit, finding: Finding) -> bool:
    """Whether an edit touches what was found."""
    return edit.span.start <= finding.span.end and finding.span.start <= edit.span.end


def lines_around(text: str, edit: Edit) -> tuple[str, str]:
    """The lines of an edit, before and after it, as `AppliedEdit` has them."""
    span, new = edit.span, edit.replacement
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", max(span.end - 1, span.start))
    end = max(end if end >= 0 else len(text), span.end)
    if span.start == span.end == start and new.endswith("\n"):
        return "", new.rstrip("\r\n")
    start = max(start, span.start - _MOST_AROUND)
    end = min(end, span.end + _MOST_AROUND)
    before = text[start:end]
    after = f"{text[start : span.start]}{new}{text[span.end : end]}"
    return before.rstrip("\r\n"), after.rstrip("\r\n")


def offset_before(offset: int, edits: Sequence[Edit]) -> int:
    """Where a place was before edits, which are sorted; what they inserted was at their place."""
    shift = 0
    for edit in edits:
        start = edit.span.start + shift
        if offset < start:
            break
        if offset < start + len(edit.replacement):
            return edit.span.start
        shift += len(edit.replacement) - (edit.span.end - edit.span.start)
    return offset - shift


def _is_among(finding: Finding, refused: Sequence[Finding]) -> bool:
    """Whether a fix was refused before; later passes may have moved it."""
    return any(
        finding.rule is other.rule
        and finding.arguments == other.arguments
        and len(finding.fixes[0].edits) == len(other.fixes[0].edits)
        for other in refused
    )
