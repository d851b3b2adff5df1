"""Applying edits and fixes to a text."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from npulens.catalog.model import Applicability, Edit, Finding
from npulens.syntax.cells import python_of_notebook
from npulens.syntax.statements import parse_whole
from npulens.text.kinds import Kind
from npulens.text.spans import Span

MAX_PASSES = 50
"""Each pass applies all that does not overlap; files in practice need two or three."""


@dataclass(frozen=True, slots=True)
class FixedText:
    """What became of a text.

    Attributes:
        text: The text with fixes applied.
        applied: The findings whose fixes were applied, with their places in the text of their pass.
        refused: Findings whose fixes would have left code that does not parse; none of them is
            applied.
    """

    text: str
    applied: tuple[Finding, ...]
    refused: tuple[Finding, ...]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits done; equal edits count once.

    Raises:
        ValueError: Two edits overlap.
    """
    pieces: list[str] = []
    position = 0
    previous: Edit | None = None
    for edit in sorted(set(edits)):
        if previous is not None and edit.span.overlaps(previous.span):
            raise ValueError(f"edits overlap at {edit.span.start}")
        pieces += [text[position : edit.span.start], edit.replacement]
        position, previous = edit.span.end, edit
    return "".join((*pieces, text[position:]))


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
        applicability: `safe` applies safe fixes only, `unsafe` both.
        wanted: Which findings to fix.
        kind: What the text is: only of Python it is known whether it still parses.
    """
    allowed = {Applicability.SAFE, applicability}
    problems = _problems(text, kind)
    applied: list[Finding] = []
    refused: list[Finding] = []
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
        text = changed
    return FixedText(text, tuple(applied), tuple(refused))


def _problems(text: str, kind: Kind) -> int:
    if kind is Kind.NOTEBOOK:
        text = python_of_notebook(text)
    return len(parse_whole(text).problems) if kind in (Kind.PYTHON, Kind.NOTEBOOK) else 0


def _applied(text: str, findings: Iterable[Finding]) -> str:
    return apply_edits(text, (edit for finding in findings for edit in finding.fixes[0].edits))


def _is_among(finding: Finding, refused: Sequence[Finding]) -> bool:
    """Whether a fix was refused before; later passes may have moved it."""
    return any(
        finding.rule is other.rule
        and finding.arguments == other.arguments
        and len(finding.fixes[0].edits) == len(other.fixes[0].edits)
        for other in refused
    )
