"""A code quality report of GitLab."""

from collections.abc import Sequence
from hashlib import blake2b

from npulens.catalog.model import Finding, Language, Severity
from npulens.report.formats import Report
from npulens.report.json_text import json_text
from npulens.report.locations import message_in_cell, relative_path
from npulens.text.document import Document
from npulens.text.places import file_line
from npulens.workspace.runs.baseline import numbered

_SEVERITIES = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.INFO: "info",
    Severity.HINT: "info",
}


class GitLabReport(Report):
    """One array; the fingerprints stay the same where lines move."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._issues: list[dict[str, object]] = []

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        path = relative_path(document.path)
        for finding, mark, number in numbered(document, findings):
            identity = f"{path}\0{mark}\0{number}".encode("utf-8", "surrogatepass")
            self._issues.append(
                {
                    "description": message_in_cell(document, finding, self._language),
                    "check_name": f"{finding.rule.code} {finding.rule.name}",
                    "fingerprint": blake2b(identity, digest_size=16).hexdigest(),
                    "severity": _SEVERITIES[finding.effective_severity],
                    "location": {
                        "path": path,
                        "lines": {
                            "begin": file_line(document, finding.span.start),
                            "end": file_line(document, finding.span.end),
                        },
                    },
                }
            )
        return ""

    def end(self, checked: int) -> str:
        """The report."""
        return json_text(self._issues, indent=1) + "\n"
