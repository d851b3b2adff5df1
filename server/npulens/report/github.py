"""Commands of a GitHub workflow, which shows them beside the changed lines."""

from collections.abc import Sequence

from npulens.catalog.model import Finding, Severity
from npulens.report.formats import Report
from npulens.report.human import printable
from npulens.report.locations import message_in_cell, relative_path
from npulens.text.document import Document
from npulens.text.places import cell_at, file_line, place_at

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
    Severity.HINT: "notice",
}


class GitHubReport(Report):
    """`::error file=a.py,line=1::message`."""

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        return "".join(self._command(document, finding) for finding in findings)

    def _command(self, document: Document, finding: Finding) -> str:
        start, end = (place_at(document, offset) for offset in finding.span)
        properties = {
            "file": relative_path(document.path),
            "line": file_line(document, finding.span.start),
            "endLine": file_line(document, finding.span.end),
            "title": f"{finding.rule.code} {finding.rule.name}",
        }
        # Columns are for one line only, and there are none of JSON.
        if start.line == end.line and cell_at(document, finding.span.start) is None:
            properties |= {"col": start.column, "endColumn": end.column}
        listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
        message = message_in_cell(document, finding, self._language)
        command = _COMMANDS[finding.effective_severity]
        return f"::{command} {listed}::{_data(message)}\n"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
