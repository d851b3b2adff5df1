"""Fixing a whole text with what counts for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Edit, Finding, MigrationStyle
from npulens.fixes.apply import FixesNeverEndError, fix_text
from npulens.fixes.differences import differences
from npulens.text.document import Document
from npulens.workspace.project.surroundings import Surroundings
from npulens.workspace.selection import selected


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What fixes make of a text.

    Attributes:
        text: What becomes of it.
        edits: What leads there, in whole lines.
        applied: How many fixes were applied.
        has_unsafe: Some of them have to be read.
    """

    text: str
    edits: tuple[Edit, ...]
    applied: int
    has_unsafe: bool


def _any_finding(_: Finding) -> bool:
    return True


def rewrite(
    document: Document,
    surroundings: Surroundings,
    applicability: Applicability,
    wanted: Callable[[Finding], bool] = _any_finding,
    style: MigrationStyle | None = None,
) -> Rewrite:
    """Apply fixes to a document until none is left.

    Args:
        document: The document; it is not changed.
        surroundings: What counts for it.
        applicability: `safe` applies safe fixes only, `unsafe` both.
        wanted: Which findings to fix.
        style: What migrated code looks like, if not as configured.
    """
    target = surroundings.target
    if style is not None:
        target = replace(target, style=style)

    def findings(text: str) -> tuple[Finding, ...]:
        found = analyze(replace(document, text=text), surroundings.catalogue, target)
        return selected(found, surroundings.configuration, document.path)

    try:
        fixed = fix_text(document.text, findings, applicability, wanted, document.kind)
    except FixesNeverEndError:
        return Rewrite(document.text, (), 0, False)
    return Rewrite(
        fixed.text,
        differences(document.text, fixed.text),
        len(fixed.applied),
        any(f.fixes[0].applicability is not Applicability.SAFE for f in fixed.applied),
    )
