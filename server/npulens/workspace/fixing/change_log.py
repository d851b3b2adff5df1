"""What a migration did, and what it leaves to people."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import Edit, Finding, Fix, LocalizedText
from npulens.catalog.rule_properties import LibraryState
from npulens.fixes.apply import lines_around, offset_before
from npulens.text.document import Document
from npulens.text.places import place_at
from npulens.verdicts.reason_wording import shortened
from npulens.workspace.files.copying import LeftOut
from npulens.workspace.files.not_read import NotRead
from npulens.workspace.fixing.effort import Effort, effort_of
from npulens.workspace.fixing.file_fixes import FixedFile
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.run import document_of

_FALLBACK = "fallback"
"""The reason that there is another way."""


class Change(NamedTuple):
    """An edit.

    Attributes:
        path: The file, from the root of the tree.
        line: In the file as it was.
        finding: The reason, `None` if the command requested it.
        before: The lines as they were, empty where lines were only put in.
        after: The lines after this edit alone.
    """

    path: str
    line: int
    finding: Finding | None
    fix: Fix
    before: str
    after: str


class Left(NamedTuple):
    """Something that a person has to do.

    Attributes:
        path: The file, from the root of the tree.
        line: In the migrated file.
        column: In code points, from 1.
    """

    path: str
    line: int
    end_line: int
    column: int
    finding: Finding
    effort: Effort


class Note(NamedTuple):
    """Something to know of a place, beside the findings."""

    path: str
    line: int
    text: LocalizedText


class Fallback(NamedTuple):
    """Something that is left as it is because there is another way without it.

    Attributes:
        path: The file, from the root of the tree.
        line: In the migrated file.
        name: What it is, such as a library.
    """

    path: str
    line: int
    name: str


@dataclass
class ChangeLog:
    """What a migration did, and what it leaves to people.

    Attributes:
        files: How many files the tree has, as far as they were copied or read.
        changes: Every edit, in the order of the files.
        left: What is left to do, advice last, the most expensive first.
        settled: How many places need nothing, by the name of the reason.
        fallbacks: Those of them that have another way.
        problems: Files that could not be fixed, and why.
        not_read: The files and folders of which nothing is known, by their paths in the tree.
    """

    files: int = 0
    changes: list[Change] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    settled: Counter[str] = field(default_factory=Counter)
    fallbacks: list[Fallback] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: dict[str, LocalizedText] = field(default_factory=dict)
    not_read: list[NotRead] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)
    _rewritten: dict[str, tuple[Document, list[Edit]]] = field(default_factory=dict)

    @property
    def changed(self) -> list[str]:
        """The files that were changed, and those that are new, in order."""
        return sorted(self._changed)

    def of_kind(self, *, advice: bool) -> list[Left]:
        """What is left: that without which a program does not run, or advice."""
        return [each for each in self.left if each.effort.is_advice == advice]

    def add_changes(self, path: str, fixed: FixedFile) -> None:
        """Keep what was done to a file because of findings."""
        self._changed.add(path)
        if fixed.original is None:
            return
        # Where the file was rewritten before, places are those of the first text.
        document, edits = self._rewritten.get(path, (fixed.original, []))
        for finding, offset, before, after in fixed.edits:
            line, _ = place_at(document, offset_before(offset, edits))
            self.changes.append(Change(path, line, finding, finding.fixes[0], before, after))

    def add_rewriting(self, path: str, document: Document, fix: Fix) -> None:
        """Keep what was done to a file because the command requested it."""
        self._changed.add(path)
        edits = sorted(fix.edits)
        self._rewritten.setdefault(path, (document, edits))
        for edit in edits:
            line, _ = place_at(document, edit.span.start)
            self.changes.append(Change(path, line, None, fix, *lines_around(document.text, edit)))

    def add_new(self, path: str, text: str, fix: Fix) -> None:
        """Keep that a file is new."""
        self.files += 1
        self._changed.add(path)
        self.changes.append(Change(path, 1, None, fix, "", text))

    def forget_left(self) -> None:
        """Forget what is left to do, and what needs nothing; files are looked at again."""
        self.left.clear()
        self.settled.clear()
        self.fallbacks.clear()

    def add_left(self, path: str, report: FileReport) -> None:
        """Keep what is left to do in a file, and what needs nothing."""
        if report.unread is not None:
            unread = NotRead(path, report.unread)
            self.not_read += [] if unread in self.not_read else [unread]
        if report.problem is not None:
            self.problems[path] = report.problem
            return
        if report.document is not None:
            self.left += (_left(path, report.document, finding) for finding in report.findings)
        self.settled.update(f.settlement.reason for f in report.settled if f.settlement is not None)
        self.fallbacks += _fallbacks(path, report)

    def sort(self) -> None:
        """Bring all into the order in which people read it."""
        self.changes.sort(key=lambda change: change.path)  # stable: passes stay in their order
        self.left.sort(key=_by_effort)
        self.notes.sort(key=lambda note: note[:2])
        self.fallbacks.sort()
        self.left_out.sort()
        self.not_read.sort()


def relative_path(path: str | Path, root: Path) -> str:
    """A path from the root of a tree, with slashes."""
    return os.path.relpath(path, root).replace(os.sep, "/")


def _by_effort(left: Left) -> tuple[bool, int, str, int, int]:
    return left.effort.is_advice, -left.effort.minutes, left.path, left.line, left.column


def _left(path: str, document: Document, finding: Finding) -> Left:
    line, column = place_at(document, finding.span.start)
    end_line, _ = place_at(document, finding.span.end)
    return Left(path, line, end_line, column, finding, effort_of(finding))


def _has_other_way(finding: Finding) -> bool:
    """Whether nothing has to be done without what is found here; there may be a hint on it."""
    settled = finding.settlement
    is_hint = finding.rule.library is LibraryState.OPTIONAL
    return is_hint or (settled is not None and settled.reason == _FALLBACK)


def _fallbacks(path: str, report: FileReport) -> Iterator[Fallback]:
    found = [f for f in (*report.findings, *report.settled) if _has_other_way(f)]
    document = (report.document or document_of(report.path)) if found else None
    for finding in found if document is not None else ():
        assert document is not None
        name = finding.arguments.get("symbol") or shortened(document, finding.span)
        yield Fallback(path, place_at(document, finding.span.start).line, name)
