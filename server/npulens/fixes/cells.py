"""Fixes in a notebook."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from npulens.catalog.model import Finding, Fix
from npulens.text.document import Document


def within_cells(findings: Iterable[Finding], document: Document) -> Iterator[Finding]:
    """The findings without fixes that would join cells."""
    starts = [mark.start for mark in document.cell_marks]

    def joins(fix: Fix) -> bool:
        # Between two cells stands the line that marks the second.
        return any(
            edit.span.start < start <= edit.span.end for edit in fix.edits for start in starts
        )

    for finding in findings:
        if any(map(joins, finding.fixes)):
            finding = replace(finding, fixes=tuple(f for f in finding.fixes if not joins(f)))
        yield finding
