"""Fixing the files of a project, one after the other."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from npulens.cli.project import Project
from npulens.cli.refusals import refusal

if TYPE_CHECKING:
    from npulens.catalog.localized import LocalizedText
    from npulens.catalog.message_ids import MessageId
    from npulens.workspace.files.git import GitTrees
    from npulens.workspace.fixing.file_fixes import FixedFile
    from npulens.workspace.runs.file_report import FileReport
    from npulens.workspace.runs.run import Checker

    Work = Callable[[Checker, Path], FixedFile]


@dataclass
class Repair:
    """A run of fixes.

    Attributes:
        work: What to do with each, such as `fix_safely`.
        files: How many files were changed so far, or would be.
        findings: How many findings were settled by that.
        unmerged: The places of projections that could not be merged, and why.
    """

    project: Project
    work: "Work"
    jobs: int | None
    files: int = 0
    findings: int = 0
    unmerged: "list[tuple[str, LocalizedText]]" = field(default_factory=list)

    def write(self, allow_dirty: bool) -> "Iterator[FileReport]":
        """Fix the files, and say what is left to be done in each.

        Raises:
            Refusal: A git tree has changes that are in no commit.
        """
        from npulens.workspace.fixing.in_place import clean_places

        trees = None if allow_dirty else clean_trees(self.project.files, "error.nothing-fixed")
        clean_places(self.project.files)
        yield from self.project.problems
        for fixed in self._fixed():
            yield self._written(fixed, trees)

    def patches(self) -> "Iterator[bytes | FileReport]":
        """The changes, none of which is made; reports for files that cannot be fixed or read."""
        from npulens.report.patch import patch

        yield from self.project.problems
        for fixed in self._fixed():
            if fixed.report.problem is not None or fixed.report.unread is not None:
                yield fixed.report
            elif fixed.after != fixed.before:
                self._count(fixed)
                yield patch(fixed.report.path, fixed.before, fixed.after)

    def _fixed(self) -> "Iterator[FixedFile]":
        from npulens.workspace.runs.processes import in_processes

        files = self.project.files
        for fixed in in_processes(self.work, self.project.checker, files, self.jobs):
            path = fixed.report.path
            self.unmerged += ((f"{path}:{line}", reason) for line, reason in fixed.unmerged)
            yield fixed

    def _written(self, fixed: "FixedFile", trees: "GitTrees | None") -> "FileReport":
        from npulens.workspace.fixing.in_place import write_fixed

        report = write_fixed(fixed, trees)
        if report.problem is None and fixed.after != fixed.before:
            self._count(fixed)
        return report

    def _count(self, fixed: "FixedFile") -> None:
        self.files += 1
        self.findings += len(fixed.applied)


def clean_trees(files: "Iterable[Path]", outcome: "MessageId") -> "GitTrees":
    """The git trees of files, all of which are committed; `outcome` says what is not done else.

    Raises:
        Refusal: A git tree has changes that are in no commit.
    """
    from npulens.catalog.messages import message
    from npulens.workspace.files.git import GitError, GitTrees

    try:
        trees = GitTrees(files)
    except GitError as error:
        reason = message("error.without-git", problem=error.text)
        raise refusal(outcome, reason=reason) from error
    if trees.changed:
        raise refusal(outcome, reason=message("error.uncommitted", tree=trees.changed[0]))
    return trees
