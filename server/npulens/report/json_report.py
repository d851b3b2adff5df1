"""Findings for programs: a JSON array, or one JSON object a line."""

from collections.abc import Sequence

from npulens.catalog.model import Finding, Language
from npulens.report.json_text import json_text
from npulens.text.document import Document
from npulens.workspace.records import finding_record


class JsonLinesReport:
    """One object a line."""

    def __init__(self, language: Language) -> None:
        self._language: Language = language

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file."""
        return "".join(f"{record}\n" for record in self._records(document, findings))

    def end(self, checked: int) -> str:
        """What follows the last file."""
        return ""

    def _records(self, document: Document, findings: Sequence[Finding]) -> list[str]:
        return [
            json_text(finding_record(document, finding, self._language)) for finding in findings
        ]


class JsonReport(JsonLinesReport):
    """One array."""

    _before_next = "["

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file."""
        parts = []
        for record in self._records(document, findings):
            parts.append(f"{self._before_next}\n{record}")
            self._before_next = ","
        return "".join(parts)

    def end(self, checked: int) -> str:
        """What follows the last file."""
        return "[]\n" if self._before_next == "[" else "\n]\n"
