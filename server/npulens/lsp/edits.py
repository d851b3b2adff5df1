"""Edits of the engine as edits of the client's documents, which it may show to the user first.

A client that knows annotations lets the user tick what to apply, each edit on its own. What needs
each other must not come apart then: an import without its use, or a use without its import.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lsprotocol import types

from npulens.catalog.model import Edit
from npulens.lsp.convert import ClientTerms
from npulens.lsp.views import Part, View
from npulens.text.spans import Span

_Uri = str


class DocumentChange(NamedTuple):
    """The edits of a document.

    Attributes:
        version: The version that they are for, `None` if it is not open.
        edits: The edits, none of which overlap.
        confirm: Why the user has to confirm them, or `None`.
    """

    version: int | None
    edits: Sequence[types.TextEdit]
    confirm: str | None = None


def to_workspace_edit(
    edits: Iterable[Edit], view: View, terms: ClientTerms, confirm: str | None = None
) -> types.WorkspaceEdit:
    """The edits of one fix.

    Args:
        edits: The edits of the text that is analysed, none of which overlap.
        view: What they are for.
        terms: What the client takes.
        confirm: Why the user has to confirm them, or `None`. Imports alone need not be confirmed:
            they are ticked before, so that who ticks the rest has both.
    """
    changes = document_changes(edits, view, terms, confirm, whole=False)
    return workspace_edit(changes, terms)


def document_changes(
    edits: Iterable[Edit],
    view: View,
    terms: ClientTerms,
    confirm: str | None = None,
    *,
    whole: bool = True,
) -> dict[_Uri, DocumentChange]:
    """The changes of the documents that a view consists of.

    Args:
        edits: The edits of the text that is analysed, none of which overlap.
        view: What they are for.
        terms: What the client takes.
        confirm: Why the user has to confirm them, or `None`.
        whole: Those of a document that have to be confirmed are one edit, which the user takes or
            leaves.
    """
    by_part: dict[_Uri, list[Edit]] = {}
    for edit in edits:
        moved = _in_its_part(edit, view)
        by_part.setdefault(view.part_of(moved.span.start).uri, []).append(moved)
    changes = {}
    for part in view.parts:
        found = by_part.get(part.uri)
        if found is not None:
            if whole and confirm is not None and _asks(terms):
                found = [_as_one(found, view.document.text)]
            ranges = (view.locate(edit.span, terms.encoding).range for edit in found)
            shown = [types.TextEdit(r, e.replacement) for r, e in zip(ranges, found, strict=True)]
            changes[part.uri] = DocumentChange(part.document.version, shown, confirm)
    return changes


def workspace_edit(
    changes: Mapping[_Uri, DocumentChange], terms: ClientTerms
) -> types.WorkspaceEdit:
    """Changes of documents, as the client can."""
    if not terms.versioned_edits:
        return types.WorkspaceEdit(changes={uri: [*each.edits] for uri, each in changes.items()})
    asks = _asks(terms)
    document_changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri, change.version),
            [_annotated(edit, change.confirm if asks else None) for edit in change.edits],
        )
        for uri, change in changes.items()
    ]
    reasons = dict.fromkeys(each.confirm for each in changes.values() if each.confirm and asks)
    annotations = {
        reason: types.ChangeAnnotation(reason, needs_confirmation=True)
        for reason in reasons
        if reason is not None
    }
    return types.WorkspaceEdit(
        document_changes=[*document_changes], change_annotations=annotations or None
    )


def _asks(terms: ClientTerms) -> bool:
    return terms.versioned_edits and terms.annotated_edits


def _annotated(
    edit: types.TextEdit, reason: str | None
) -> types.TextEdit | types.AnnotatedTextEdit:
    if reason is None or _is_import(edit):
        return edit
    return types.AnnotatedTextEdit(reason, edit.range, edit.new_text)


def _is_import(edit: types.TextEdit) -> bool:
    """Whether an edit adds imports and nothing else."""
    lines = [line for line in edit.new_text.splitlines() if line.strip()]
    is_added = edit.range.start == edit.range.end
    return is_added and bool(lines) and all(line.startswith(("import ", "from ")) for line in lines)


def _as_one(edits: Sequence[Edit], text: str) -> Edit:
    """One edit that makes of a text what several do."""
    ordered = sorted(edits, key=lambda edit: edit.span)
    pieces: list[str] = []
    place = ordered[0].span.start
    for edit in ordered:
        pieces += (text[place : edit.span.start], edit.replacement)
        place = edit.span.end
    return Edit(Span(ordered[0].span.start, place), "".join(pieces))


def _in_its_part(edit: Edit, view: View) -> Edit:
    """A whole line that would be put before a later cell goes to the end of the one before it."""
    start, end = edit.span
    part: Part = view.part_of(start)
    if start == end == part.start and part is not view.parts[0]:
        line = edit.replacement
        if line.endswith("\n"):
            return Edit(Span(start - 1, start - 1), f"\n{line[:-1]}")
    return edit
