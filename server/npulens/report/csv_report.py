"""Findings for spreadsheets, as comma-separated values."""

import csv
import io
from collections.abc import Iterable, Sequence

from npulens.catalog.model import Finding, Language
from npulens.report.formats import Report
from npulens.report.human import printable
from npulens.report.silence_text import settled_text
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


class CsvReport(Report):
    """A line with the names of the columns, and one for each finding."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._heading = _row(_COLUMNS)

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        rows = (
            self._row(
                document, finding, finding.effective_severity.value, finding.message(self._language)
            )
            for finding in findings
        )
        return self._with_heading(rows)

    def settled(self, document: Document, settled: Sequence[Finding]) -> str:
        """The part of what is settled in one file, which has a severity of its own."""
        rows = (
            self._row(document, finding, "settled", settled_text(document, finding, self._language))
            for finding in settled
        )
        return self._with_heading(rows)

    def _with_heading(self, rows: Iterable[str]) -> str:
        heading, self._heading = self._heading, ""
        return heading + "".join(rows)

    def end(self, checked: int) -> str:
        """The heading, if nothing was found."""
        return self._heading

    def _row(self, document: Document, finding: Finding, severity: str, message: str) -> str:
        rule = finding.rule
        path = document.path
        line, column = place_at(document, finding.span.start)
        cell = cell_at(document, finding.span.start)
        return _row(
            (
                f"./{path}" if path.startswith(_FORMULA) else path,
                str(line),
                str(column),
                severity,
                rule.code,
                rule.name,
                rule.family,
                finding.fixes[0].applicability.value if finding.fixes else "",
                message,
                "" if cell is None else str(cell),
            )
        )


def _row(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(printable, cells))
    return text.getvalue()
