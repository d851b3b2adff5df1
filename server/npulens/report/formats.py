"""The forms in which findings are shown; each is imported when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, runtime_checkable

from npulens.catalog.model import Finding, Language
from npulens.text.document import Document


class Report(Protocol):
    """Turns findings into text, file by file."""

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file."""

    def end(self, checked: int) -> str:
        """What follows the last of so many files checked."""


@runtime_checkable
class ListsSettled(Protocol):
    """A report that has a form of its own for places where nothing is to be done."""

    def settled(self, document: Document, settled: Sequence[Finding]) -> str:
        """The part of what is settled in one file."""


KNOW_PROBLEMS_ONLY = frozenset({"github", "gitlab", "junit"})
"""The forms that cannot say of a place that nothing is to be done there."""
_REPORTS = {
    "concise": ("concise", "ConciseReport"),
    "json": ("json_report", "JsonReport"),
    "jsonl": ("json_report", "JsonLinesReport"),
    "csv": ("csv_report", "CsvReport"),
    "sarif": ("sarif", "SarifReport"),
    "github": ("github", "GitHubReport"),
    "gitlab": ("gitlab", "GitLabReport"),
    "junit": ("junit", "JUnitReport"),
}
"""Besides text for people: the module of `npulens.report`, and the class in it."""


def make_report(form: str, language: Language, on_terminal: bool) -> Report:
    """The report of this form.

    Args:
        form: `human`, or a key of the table above.
        language: The language of messages.
        on_terminal: Whether it goes to standard output, in colour if that is a terminal.
    """
    if form == "human":
        from npulens.report.human import HumanReport

        colour = on_terminal and sys.__stdout__ is not None and os.isatty(1)
        return HumanReport(language, colour and not os.environ.get("NO_COLOR"))
    module, name = _REPORTS[form]
    report: Report = getattr(import_module(f"npulens.report.{module}"), name)(language)
    return report


def make_statistics(form: str, language: Language, on_terminal: bool) -> Report:
    """The numbers instead of the findings: `human` or `json`."""
    from npulens.report.statistics import JsonStatistics, Statistics

    return JsonStatistics(language) if form == "json" else Statistics(language)
