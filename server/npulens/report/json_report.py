"""Findings for programs: a JSON array, or one JSON object a line."""

from collections.abc import Sequence
from typing import Any

from npulens.catalog.model import Finding
from npulens.report.formats import Report
from npulens.report.json_text import json_text
from npulens.report.silence_text import settled_record
from npulens.text.document import Document
from npulens.workspace.runs.records import finding_record


class JsonLinesReport(Report):
    """One object a line."""

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        return "".join(f"{record}\n" for record in self._records(document, findings))

    def settled(self, document: Document, settled: Sequence[Finding]) -> str:
        """The part of what is settled in one file."""
        return self.file(document, settled)

    def _records(self, document: Document, findings: Sequence[Finding]) -> list[str]:
        return [json_text(self._record(document, finding)) for finding in findings]

    def _record(self, document: Document, finding: Finding) -> dict[str, Any]:
        record = finding_record(document, finding, self._language)
        if finding.settlement is None:
            return record
        return {**record, **settled_record(document, finding, self._language)}


class JsonReport(JsonLinesReport):
    """One array."""

    _before_next = "["

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        parts = []
        for record in self._records(document, findings):
            parts.append(f"{self._before_next}\n{record}")
            self._before_next = ","
        return "".join(parts)

    def end(self, checked: int) -> str:
        """What follows the last file."""
        return "[]\n" if self._before_next == "[" else "\n]\n"
