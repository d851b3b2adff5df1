"""Fixes in a notebook."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from npulens.catalog.model import Finding, Fix
from npulens.text.document import Document
from npulens.text.spans import Span


def within_cells(findings: Iterable[Finding], document: Document) -> Iterator[Finding]:
    """The findings without fixes that would join cells."""
    starts = [mark.start for mark in document.cell_marks]

    def joins(fix: Fix) -> bool:
        # The line between two cells marks the second.
        return any(_contains_one(starts, edit.span) for edit in fix.edits)

    for finding in findings:
        if any(map(joins, finding.fixes)):
            finding = replace(finding, fixes=tuple(f for f in finding.fixes if not joins(f)))
        yield finding


def _contains_one(starts: Sequence[int], span: Span) -> bool:
    following = bisect_right(starts, span.start)
    return following < len(starts) and starts[following] <= span.end
