"""Findings for spreadsheets, as comma-separated values."""

import csv
import io
from collections.abc import Sequence

from npulens.catalog.model import Finding, Language
from npulens.report.human import printable
from npulens.text.document import Document
from npulens.text.places import cell_at, place_at

_COLUMNS = (
    "path",
    "line",
    "column",
    "severity",
    "code",
    "name",
    "family",
    "fix",
    "message",
    "cell",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With one of these a cell starts that a spreadsheet computes."""


class CsvReport:
    """A line with the names of the columns, and one for each finding."""

    def __init__(self, language: Language) -> None:
        self._language: Language = language
        self._heading = _row(_COLUMNS)

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file."""
        heading, self._heading = self._heading, ""
        return heading + "".join(self._row(document, finding) for finding in findings)

    def end(self, checked: int) -> str:
        """The heading, if nothing was found."""
        return self._heading

    def _row(self, document: Document, finding: Finding) -> str:
        rule = finding.rule
        path = document.path
        line, column = place_at(document, finding.span.start)
        cell = cell_at(document, finding.span.start)
        return _row(
            (
                f"./{path}" if path.startswith(_FORMULA) else path,
                str(line),
                str(column),
                finding.effective_severity.value,
                rule.code,
                rule.name,
                rule.family,
                finding.fixes[0].applicability.value if finding.fixes else "",
                finding.message(self._language),
                "" if cell is None else str(cell),
            )
        )


def _row(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(printable, cells))
    return text.getvalue()
