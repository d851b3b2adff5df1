"""Fixing a file: from its bytes to the bytes that it should hold instead."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Finding, LocalizedText
from npulens.fixes.apply import AppliedEdit, FixesNeverEndError, fix_text
from npulens.text.decoding import UndecodableSource, UnencodableText
from npulens.text.document import Document
from npulens.text.kinds import Kind
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.sources import read_source
from npulens.verdicts.ledger import Judgement
from npulens.workspace.files.not_read import Reason
from npulens.workspace.fixing.merging_in_project import (
    Project,
    merged_in_project,
    project_of,
    told,
)
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.run import Checker, internal_error
from npulens.workspace.settings.configuration import Configuration


@dataclass(frozen=True, slots=True)
class FixedFile:
    """What became of a file; nothing is written yet.

    Attributes:
        report: What is left to be done in it.
        before: What it holds, or empty if it stays as it is.
        applied: The findings that were repaired.
        original: The text that they were done to.
        unmerged: Why projections that are joined stay two, if they were to be merged, with lines.
    """

    report: FileReport
    before: bytes = b""
    after: bytes = b""
    applied: tuple[Finding, ...] = ()
    edits: tuple[AppliedEdit, ...] = ()
    original: Document | None = None
    unmerged: Sequence[tuple[int, LocalizedText]] = ()


def fix_safely(checker: Checker, path: Path) -> FixedFile:
    """Apply the safe fixes to what a file holds."""
    return _fix(checker, path, Applicability.SAFE)


def fix_unsafely(checker: Checker, path: Path) -> FixedFile:
    """Apply the unsafe fixes as well."""
    return _fix(checker, path, Applicability.UNSAFE)


@dataclass(frozen=True)
class MergingFixes:
    """Apply the unsafe fixes, and merge the projections whose outputs they join.

    Attributes:
        is_written: Whether users will see the result when they read why others are not merged.
    """

    configuration: Configuration
    is_written: bool = True

    def __call__(self, checker: Checker, path: Path) -> FixedFile:
        """Do it to what a file holds."""
        return _fix(checker, path, Applicability.UNSAFE, self)

    def merged(
        self, path: Path, fixed: str, original: str
    ) -> tuple[str, Sequence[tuple[int, LocalizedText]]]:
        """A fixed text with projections merged, and why others are not."""
        project = project_of(path, self.configuration)
        project = self._projects.setdefault(project.root, project)
        text, refusals = merged_in_project(path, fixed, project)
        errors = told(refusals, fixed, text if self.is_written else original)
        return text, [(error.line, error.text) for error in errors]

    @cached_property
    def _projects(self) -> dict[Path, Project]:
        """By their roots; each is read once, since fixes name no other attributes."""
        return {}


def _fix(
    checker: Checker,
    path: Path,
    applicability: Applicability,
    merging: MergingFixes | None = None,
) -> FixedFile:
    data = checker.read(path)
    if isinstance(data, FileReport):
        return FixedFile(data)
    report = checker.check_bytes(str(path), data)
    allowed = applicability.included
    is_fixable = any(f.fixes and f.fixes[0].applicability in allowed for f in report.findings)
    if not is_fixable and (merging is None or b"glu(" not in data):
        return FixedFile(report)
    try:
        return _fixed(checker, report, data, applicability, merging)
    except (UndecodableSource, UnencodableText, UnreadableNotebook):
        return FixedFile(report)  # C++ with other bytes than text is read, but not written
    except FixesNeverEndError as error:
        return FixedFile(replace(report, problem=message("error.not-fixed", reason=error.text)))
    except Exception as error:  # one file must not end the repair of the others
        problem, traceback = internal_error(error)
        failed = FileReport(str(path), problem=problem, traceback=traceback, unread=Reason.FAILED)
        return FixedFile(failed)


def _fixed(
    checker: Checker,
    report: FileReport,
    data: bytes,
    applicability: Applicability,
    merging: MergingFixes | None,
) -> FixedFile:
    source = read_source(report.path, data)
    if source.encode(source.text) != data:
        # Some encodings write one character in two ways, and decoding forgets in which.
        reason = message("error.not-given-back", encoding=source.encoding)
        problem = message("error.not-fixed", reason=reason)
        return FixedFile(FileReport(report.path, problem=problem))
    original = Document(report.path, source.text)
    last = original, Judgement(report.findings, report.settled)  # at the end that of the result

    def analyze(text: str) -> tuple[Finding, ...]:
        nonlocal last
        if text != last[0].text:
            document = Document(report.path, text)
            last = document, checker.judged(document)
        return tuple(last[1].findings)

    fixed = fix_text(source.text, analyze, applicability, kind=original.kind)
    text = fixed.text
    unmerged: Sequence[tuple[int, LocalizedText]] = ()
    if merging is not None and original.kind is Kind.PYTHON:
        text, unmerged = merging.merged(Path(report.path), text, source.text)
    left = analyze(text)
    after = source.encode(text)
    settled = tuple(last[1].settled)
    report = replace(report, findings=left, document=last[0] if left else None, settled=settled)
    if after == data:
        return FixedFile(report, unmerged=unmerged)
    return FixedFile(report, data, after, fixed.applied, fixed.edits, original, unmerged)
