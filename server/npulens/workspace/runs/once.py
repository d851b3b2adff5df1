"""What is reported once in a run over many files, at the first of them by path."""

from dataclasses import replace

from npulens.catalog import rule_properties
from npulens.catalog.model import Finding
from npulens.catalog.settlements import Settlement
from npulens.checks.intent.library_hints import LIBRARY
from npulens.workspace.runs.file_report import FileReport

_REPORTED = Settlement("reported-once")


class Once:
    """The reports of one run, each of which knows what those before it reported."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, report: FileReport) -> FileReport:
        """A report with hints on optional libraries that none before has; others are settled."""
        hints = [
            finding
            for finding in report.findings
            if finding.rule.once is rule_properties.Once.PROJECT
        ]
        again = [hint for hint in hints if hint.arguments[LIBRARY] in self._reported]
        self._reported.update(hint.arguments[LIBRARY] for hint in hints)
        return _without(report, again) if again else report


def _without(report: FileReport, again: list[Finding]) -> FileReport:
    kept = tuple(finding for finding in report.findings if finding not in again)
    plain = [replace(f, fixes=(), related=(), note=None, settlement=_REPORTED) for f in again]
    settled = (*report.settled, *plain)
    return replace(
        report,
        findings=kept,
        settled=tuple(sorted(settled, key=lambda finding: (finding.span, finding.rule.code))),
    )
