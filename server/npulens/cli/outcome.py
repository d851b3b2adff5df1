"""Showing reports of files as they come, in one of several forms, and the exit code."""

import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npulens.cli.main import FINDINGS
from npulens.cli.progress_bar import Progress
from npulens.cli.refusals import FAILURE, Refusal, complain_of

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.cli.settled_summary import Silence
    from npulens.cli.skipped import Skipped
    from npulens.report.formats import Report
    from npulens.workspace.runs.file_report import FileReport

Filter = Callable[["FileReport"], "FileReport"]
"""Leaves out findings of a report."""


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


def make_report(form: str, language: "Language", on_terminal: bool) -> "Report":
    """The report of this form, in colour if it goes to a terminal."""
    if form == "human":
        from npulens.report.human import HumanReport

        colour = on_terminal and sys.__stdout__ is not None and os.isatty(1)
        return HumanReport(language, colour and not os.environ.get("NO_COLOR"))
    module, name = _REPORTS[form]
    report: Report = getattr(import_module(f"npulens.report.{module}"), name)(language)
    return report


def make_statistics(form: str, language: "Language", on_terminal: bool) -> "Report":
    """The numbers instead of the findings: `human` or `json`."""
    from npulens.report.statistics import JsonStatistics, Statistics

    return JsonStatistics(language) if form == "json" else Statistics(language)


class Output:
    """Where a report goes: to standard output at once, or to a file at its end, as a whole."""

    def __init__(self, path: str | None) -> None:
        """Set up.

        Raises:
            Refusal: There is no folder for the file.
        """
        self._path = None if path is None else Path(os.path.realpath(path))
        self._name = path
        self._parts: list[str] = []
        if self._path is not None and not self._path.parent.is_dir():
            from npulens.catalog.messages import about, message

            raise Refusal(
                about(
                    path, message("error.cannot-be-written", reason=message("error.no-such-folder"))
                )
            )

    def write(self, text: str) -> None:
        """Show a part."""
        if self._path is None:
            click.echo(text, nl=False)
        else:
            self._parts.append(text)

    def close(self) -> None:
        """Show what is not shown yet.

        Raises:
            Refusal: The file cannot be written; what it was, it still is.
        """
        if self._path is None:
            return
        from npulens.catalog.messages import about, cannot_be_written
        from npulens.workspace.files.writing import write_whole

        data = "".join(self._parts).encode("utf-8", "backslashreplace")
        try:
            if self._path.exists() and not self._path.is_file():
                self._path.write_bytes(data)  # a device or a pipe
            else:
                write_whole(self._path, data)
        except OSError as error:
            raise Refusal(about(self._name, cannot_be_written(error))) from error


def show(
    files: "Iterable[FileReport]",
    report: "Report",
    output: Output,
    total: int,
    skipped: "Skipped",
    filters: Iterable[Filter] = (),
    last_words: Callable[[], str] = str,
    silence: "Silence | None" = None,
) -> int:
    """Show all reports.

    Args:
        files: The reports.
        report: How they look.
        output: Where they go.
        total: How many there will be.
        skipped: Takes note of those that could not be read.
        filters: What is left out of them.
        last_words: What the output ends with.
        silence: Takes note of what is settled.

    Returns:
        The exit code.
    """
    from npulens.report.human import HumanReport

    filters = tuple(filters)
    progress = Progress(total)
    checked = findings = problems = 0
    for file in files:
        progress.advance()
        skipped.add(file)
        if file.problem is not None:
            problems += 1
            progress.clear()
            complain_of(file)
            continue
        checked += 1
        for leave_out in filters:
            file = leave_out(file)
        if file.document is not None and file.findings:
            findings += len(file.findings)
            progress.clear()
            output.write(report.file(file.document, file.findings))
        if silence is not None:
            output.write(silence.part(file, report))
    progress.clear()
    if checked or not isinstance(report, HumanReport):  # "nothing found" would be no answer
        output.write(report.end(checked))
    output.write(last_words())
    output.close()
    return FAILURE if problems else FINDINGS if findings else 0
