"""What a migration did, and what it leaves to people."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import Finding, Fix, LocalizedText
from npulens.text.document import Document
from npulens.text.places import place_at
from npulens.workspace.copying import LeftOut
from npulens.workspace.effort import Effort, effort_of, total_minutes
from npulens.workspace.file_report import FileReport
from npulens.workspace.fixing import FixedFile


class Change(NamedTuple):
    """An edit.

    Attributes:
        path: The file, from the root of the tree.
        line: In the file as it was.
        finding: The reason, `None` if the command asked for it.
        fix: What was done.
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
        end_line: Where it ends.
        column: In code points, from 1.
        finding: What it is.
        effort: What it may cost.
    """

    path: str
    line: int
    end_line: int
    column: int
    finding: Finding
    effort: Effort


class Note(NamedTuple):
    """Something to know of a place that no finding tells."""

    path: str
    line: int
    text: LocalizedText


@dataclass
class ChangeLog:
    """What a migration did, and what it leaves to people.

    Attributes:
        files: How many files the tree has, as far as they were copied or read.
        changed: The files that were changed, and those that are new.
        changes: Every edit, in the order of the files.
        left: What is left to do, the most expensive first.
        notes: What to know besides.
        left_out: What is not in the copy.
        problems: Files that could not be fixed, and why.
    """

    files: int = 0
    changed: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def minutes(self) -> int:
        """What all that is left may cost together."""
        return total_minutes(each.effort for each in self.left)

    def add_changes(self, path: str, fixed: FixedFile) -> None:
        """Keep what was done to a file."""
        self.add_edits(path, _changes(path, fixed))

    def add_edits(self, path: str, changes: Iterable[Change]) -> None:
        """Keep edits of a file."""
        if path not in self.changed:
            self.changed.append(path)
        self.changes += changes

    def add_left(self, path: str, report: FileReport) -> None:
        """Keep what is left to do in a file."""
        if report.problem is not None:
            self.problems.append((path, report.problem))
        elif report.document is not None:
            self.left += (_left(path, report.document, finding) for finding in report.findings)

    def sort(self) -> None:
        """Bring all into the order in which people read it."""
        self.changed.sort()
        self.changes.sort(key=lambda change: change.path)  # stable: passes stay in their order
        self.left.sort(key=lambda each: (-each.effort.minutes, each.path, each.line, each.column))
        self.notes.sort(key=lambda note: note[:2])
        self.left_out.sort()


def relative_path(path: str | Path, root: Path) -> str:
    """A path from the root of a tree, with slashes."""
    return os.path.relpath(path, root).replace(os.sep, "/")


def _changes(path: str, fixed: FixedFile) -> Iterable[Change]:
    document = fixed.original
    if document is None:
        return
    for finding, offset, before, after in fixed.edits:
        line, _ = place_at(document, offset)
        yield Change(path, line, finding, finding.fixes[0], before, after)


def _left(path: str, document: Document, finding: Finding) -> Left:
    line, column = place_at(document, finding.span.start)
    end_line, _ = place_at(document, finding.span.end)
    return Left(path, line, end_line, column, finding, effort_of(finding))
