"""Fixing a whole text with what counts for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Edit, Finding, MigrationStyle
from npulens.fixes.apply import AppliedEdit, FixesNeverEndError, fix_text
from npulens.fixes.fix_differences import differences
from npulens.text.document import Document
from npulens.workspace.project.file_context import FileContext
from npulens.workspace.settings.selection import selected


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What fixes make of a text.

    Attributes:
        edits: What leads there, in whole lines.
        reasons: Of each edit the findings that it is for; none for an import that others need.
    """

    text: str
    edits: tuple[Edit, ...]
    reasons: tuple[tuple[Finding, ...], ...]
    applied: int


def _any_finding(_: Finding) -> bool:
    return True


def rewrite(
    document: Document,
    file_context: FileContext,
    applicability: Applicability,
    wanted: Callable[[Finding], bool] = _any_finding,
    style: MigrationStyle | None = None,
) -> Rewrite:
    """Apply fixes to a document until none is left, in a style if not in the configured one."""
    target = file_context.target
    if style is not None:
        target = replace(target, style=style)

    def findings(text: str) -> tuple[Finding, ...]:
        found = analyze(replace(document, text=text), file_context.catalogue, target)
        return selected(found, file_context.configuration, document.path)

    try:
        fixed = fix_text(document.text, findings, applicability, wanted, document.kind)
    except FixesNeverEndError:
        return Rewrite(document.text, (), (), 0)
    edits = differences(document.text, fixed.text)
    reasons = tuple(_reasons(edit, fixed.edits) for edit in edits)
    return Rewrite(fixed.text, edits, reasons, len(fixed.applied))


def _reasons(edit: Edit, applied: Iterable[AppliedEdit]) -> tuple[Finding, ...]:
    if _is_import(edit):
        return ()
    start, end = edit.span
    return tuple(each.finding for each in applied if start <= each.offset < max(end, start + 1))


def _is_import(edit: Edit) -> bool:
    """Whether an edit adds imports and nothing else."""
    lines = [line for line in edit.replacement.splitlines() if line.strip()]
    is_added = edit.span.start == edit.span.end
    return is_added and bool(lines) and all(line.startswith(("import ", "from ")) for line in lines)
