"""What a project has accepted, so that only new findings are reported.

A finding is known again by its file, its rule and the text of its line, not by the number:
what moves stays accepted. Where a file has the same more often than accepted, the last are new.
"""

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npulens.catalog.messages import LocalizedError, cannot_be_read, message
from npulens.catalog.model import Finding
from npulens.text.document import Document
from npulens.workspace.files.writing import write_whole
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.settings.configuration import absolute

_VERSION = 1
_MOST_OF_LINE = 200
"""Of a long line, so many characters on either side distinguish a finding from others."""


class BaselineError(LocalizedError):
    """A baseline cannot be used; the text says why, in a part of a sentence."""


def recognisable(document: Document, findings: Sequence[Finding]) -> Iterator[str]:
    """For each finding what stays the same when lines move: its rule and a digest of its line."""
    starts = document.line_starts
    for finding in findings:
        place = finding.span.start
        line = bisect_right(starts, place)
        first = max(starts[line - 1], place - _MOST_OF_LINE)
        last = min(
            starts[line] if line < len(starts) else len(document.text), place + _MOST_OF_LINE
        )
        text = " ".join(document.text[first:last].split()).encode("utf-8", "surrogatepass")
        yield f"{finding.rule.code} {blake2b(text, digest_size=8).hexdigest()}"


def numbered(document: Document, findings: Sequence[Finding]) -> Iterator[tuple[Finding, str, int]]:
    """Each finding with what stays the same of it, and how many have had the same until then."""
    times: Counter[str] = Counter()
    for finding, mark in zip(findings, recognisable(document, findings), strict=True):
        times[mark] += 1
        yield finding, mark, times[mark]


class Baseline:
    """What a file accepts."""

    def __init__(self, folder: Path, accepted: Mapping[str, Mapping[str, int]]) -> None:
        self._folder = folder
        self._accepted = accepted

    @classmethod
    def read(cls, name: str) -> "Baseline":
        """Read the file of this name.

        Raises:
            BaselineError: It cannot be used.
        """
        try:
            content = json.loads(Path(name).read_bytes())
        except OSError as error:
            raise BaselineError(cannot_be_read(error)) from error
        except (ValueError, RecursionError) as error:
            raise BaselineError(message("error.baseline-not-json")) from error
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise BaselineError(message("error.other-baseline"))
        accepted: Any = content.get("accepted")
        if not _is_table(accepted, lambda counts: _is_table(counts, _is_count)):
            raise BaselineError(message("error.baseline-form"))
        return cls(absolute(Path(name)).parent, accepted)

    def leave_out(self, report: FileReport) -> FileReport:
        """The report without what is accepted."""
        accepted = self._accepted.get(_relative(report.path, self._folder))
        if not accepted or report.document is None:
            return report
        found = numbered(report.document, report.findings)
        new = tuple(finding for finding, mark, number in found if number > accepted.get(mark, 0))
        return replace(report, findings=new)


class Acceptance:
    """Collects what there is, to be accepted from now on."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = absolute(Path(path)).parent
        self._accepted: dict[str, dict[str, int]] = {}

    def accept(self, report: FileReport) -> FileReport:
        """The report without any finding, all of which are accepted."""
        if report.document is not None and report.findings:
            counts = Counter(recognisable(report.document, report.findings))
            self._accepted[_relative(report.path, self._folder)] = counts
        return replace(report, findings=())

    def save(self) -> None:
        """Write the file.

        Raises:
            OSError: It cannot be written.
        """
        content = {"version": _VERSION, "accepted": self._accepted}
        text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        write_whole(Path(os.path.realpath(self.path)), text.encode())


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(absolute(Path(path)), folder).replace(os.sep, "/")


def _is_table(value: Any, is_right: Any) -> bool:
    return isinstance(value, dict) and all(is_right(item) for item in value.values())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value > 0
