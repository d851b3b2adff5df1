"""What the last verified run saw, as diagnostics and shapes of the texts that were run."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from npulens.catalog.model import LocalizedText
from npulens.checks.segments.shape_answers import Hint
from npulens.lsp.session.convert import ClientTerms
from npulens.lsp.session.views import Part, View
from npulens.text.document import Document
from npulens.text.notebooks import cell_sources
from npulens.text.places import place_at

Shapes = tuple[tuple[int, ...], ...]
"""The different shapes that a name had."""
Name = tuple[int, str]
"""A name and the line that assigns it, from 1."""
ShapesByName = dict[Name, Shapes]
SOURCE = "npulens (run)"
"""Tells these diagnostics from those of the analysis."""


def name_of(document: Document, hint: Hint) -> Name:
    """The name that a hint stands behind, as shapes of a run are known by it."""
    return place_at(document, hint.span.start).line, document.text[slice(*hint.span)]


def is_text_of(document: Document, view: View) -> bool:
    """Whether an editor shows what a file holds, or the cells of it."""
    shown = [part.document.text for part in view.parts]
    if not document.cell_marks:
        return shown == [document.text]
    cells = cell_sources(document.text)  # each ends with a line feed, which editors leave out
    return [text.removesuffix("\n") for text in shown] == [cell[:-1] for cell in cells]


@dataclass(frozen=True, slots=True)
class RunNote:
    """One diagnostic in the making: a line of a file, and what to say of it.

    Attributes:
        path: The file, without links.
        line: From 1; in a notebook, from the start of the cell.
        cell: The number of the cell in a notebook, from 1.
        code: What kind of thing it is.
    """

    path: str
    line: int
    cell: int | None
    severity: types.DiagnosticSeverity
    code: str
    message: LocalizedText


class RunDiagnostics:
    """The diagnostics of the last run, for the very texts that were run."""

    def __init__(self) -> None:
        """There was no run yet."""
        self._documents: Mapping[str, Document] = {}
        self._notes: dict[str, list[RunNote]] = {}
        self._shapes: dict[str, ShapesByName] = {}

    def take(
        self,
        documents: Mapping[str, Document],
        notes: Iterable[RunNote],
        shapes: Mapping[tuple[str, int, str], Shapes],
    ) -> None:
        """Forget the run before.

        Args:
            documents: The texts that were run, by their paths.
            notes: What to say of lines.
            shapes: Those of names, by path, line and name.
        """
        self._shapes = {}
        for (path, line, name), seen in shapes.items():
            self._shapes.setdefault(path, {})[line, name] = seen
        self._documents = documents
        self._notes = {}
        for note in notes:
            self._notes.setdefault(note.path, []).append(note)

    def clear(self) -> None:
        """Forget the run."""
        self._documents = {}
        self._notes = {}
        self._shapes = {}

    def shapes_of(self, path: Path | None, view: View) -> ShapesByName:
        """The shapes of names in a file whose text an editor shows as it was run."""
        if path is None or not self._shapes:
            return {}
        name = os.path.realpath(path)
        document = self._documents.get(name)
        is_same = document is not None and is_text_of(document, view)
        return self._shapes.get(name, {}) if is_same else {}

    def of_part(
        self, path: Path | None, view: View, uri: str, terms: ClientTerms
    ) -> list[types.Diagnostic]:
        """The diagnostics of one part of a file as an editor shows it."""
        if path is None or not self._notes:
            return []
        name = os.path.realpath(path)
        document = self._documents.get(name)
        part = view.part_named(uri)
        if document is None or part is None or not is_text_of(document, view):
            return []
        numbers = [mark.number for mark in document.cell_marks]
        cell = numbers[view.parts.index(part)] if numbers else None
        notes = [note for note in self._notes.get(name, ()) if note.cell == cell]
        return [_diagnostic(note, part, terms) for note in notes]


def _diagnostic(note: RunNote, part: Part, terms: ClientTerms) -> types.Diagnostic:
    document = part.document
    start = end = document.line_starts[-1]
    if note.line <= document.line_count:
        text = document.line_text(note.line - 1)
        start = document.line_starts[note.line - 1] + len(text) - len(text.lstrip())
        end = document.line_starts[note.line - 1] + len(text.rstrip())
    ends = (document.position_at(offset, terms.encoding) for offset in (start, max(start, end)))
    return types.Diagnostic(
        range=types.Range(*(types.Position(*place) for place in ends)),
        severity=note.severity,
        code=note.code,
        source=SOURCE,
        message=note.message.in_language(terms.language),
    )
