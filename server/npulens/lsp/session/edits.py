"""Edits of the engine as edits of the client's documents.

No edit asks to be confirmed: editors leave out what asks until the user ticks it, and apply the
rest, so that an import came without its use. Titles say which fixes are unsafe, and each is one
step to undo.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lsprotocol import types

from npulens.catalog.model import Edit
from npulens.lsp.session.convert import ClientTerms
from npulens.lsp.session.views import Part, View
from npulens.text.spans import Span

_Uri = str


class DocumentChange(NamedTuple):
    """The edits of a document.

    Attributes:
        version: The version that they are for, `None` if it is not open.
        edits: The edits, none of which overlap.
        labels: What a preview calls each of them; empty if none is wanted.
    """

    version: int | None
    edits: Sequence[types.TextEdit]
    labels: Sequence[str] = ()


def to_workspace_edit(edits: Iterable[Edit], view: View, terms: ClientTerms) -> types.WorkspaceEdit:
    """The edits of one fix, none of which overlap."""
    return workspace_edit(document_changes([*edits], view, terms), terms)


def document_changes(
    edits: Sequence[Edit], view: View, terms: ClientTerms, labels: Sequence[str] = ()
) -> dict[_Uri, DocumentChange]:
    """The changes of the documents of a view, with what a preview calls each edit, if wanted."""
    by_part: dict[_Uri, list[tuple[Edit, str]]] = {}
    for edit, label in zip(edits, labels or [""] * len(edits), strict=True):
        moved = _in_its_part(edit, view)
        by_part.setdefault(view.part_of(moved.span.start).uri, []).append((moved, label))
    changes = {}
    for part in view.parts:
        found = by_part.get(part.uri, ())
        shown = [
            types.TextEdit(view.locate(edit.span, terms.encoding).range, edit.replacement)
            for edit, _ in found
        ]
        if shown:
            called = [label for _, label in found] if labels else []
            changes[part.uri] = DocumentChange(part.document.version, shown, called)
    return changes


def workspace_edit(
    changes: Mapping[_Uri, DocumentChange], terms: ClientTerms
) -> types.WorkspaceEdit:
    """Changes of documents, as the client can."""
    if not terms.versioned_edits:
        return types.WorkspaceEdit(changes={uri: [*each.edits] for uri, each in changes.items()})
    document_changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri, change.version),
            _annotated(change) if terms.annotated_edits else [*change.edits],
        )
        for uri, change in changes.items()
    ]
    labels = (label for change in changes.values() for label in change.labels)
    annotations = {label: types.ChangeAnnotation(label) for label in labels}
    return types.WorkspaceEdit(
        document_changes=[*document_changes],
        change_annotations=(annotations or None) if terms.annotated_edits else None,
    )


def _annotated(
    change: DocumentChange,
) -> list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit]:
    if not change.labels:
        return [*change.edits]
    labelled = zip(change.labels, change.edits, strict=True)
    return [types.AnnotatedTextEdit(label, edit.range, edit.new_text) for label, edit in labelled]


def _in_its_part(edit: Edit, view: View) -> Edit:
    """A whole line that would be put before a later cell goes to the end of the one before it."""
    start, end = edit.span
    part: Part = view.part_of(start)
    if start == end == part.start and part is not view.parts[0]:
        line = edit.replacement
        if line.endswith("\n"):
            return Edit(Span(start - 1, start - 1), f"\n{line[:-1]}")
    return edit
