"""What is analysed as one text, and the documents of the client that it consists of."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lsprotocol import types

from npulens.text.document import Document, PositionEncoding
from npulens.text.kinds import Kind
from npulens.text.notebooks import CellMark
from npulens.text.places import file_line
from npulens.text.spans import Position, Span


@dataclass(frozen=True)
class Part:
    """A document of the client in the text that is analysed.

    Attributes:
        document: Its text as the client has it.
        start: Where it starts in the text that is analysed.
    """

    uri: str
    document: Document
    start: int = 0

    @property
    def end(self) -> int:
        """Where it ends in the text that is analysed."""
        return self.start + len(self.document.text)


class Located(NamedTuple):
    """A range in one of the parts."""

    part: Part
    range: types.Range


@dataclass(frozen=True)
class View:
    """A text and its parts: one for a file, one for each code cell of a notebook.

    Attributes:
        parts: In their order, at least one.
    """

    document: Document
    parts: tuple[Part, ...]

    @classmethod
    def of_file(cls, uri: str, document: Document) -> "View":
        """The view of a document that is analysed as it is."""
        return cls(document, (Part(uri, document),))

    def part_of(self, offset: int) -> Part:
        """The part that an offset is in."""
        starts = [part.start for part in self.parts]
        return self.parts[max(bisect_right(starts, offset) - 1, 0)]

    def part_named(self, uri: str) -> Part | None:
        """The part with this name."""
        return next((part for part in self.parts if part.uri == uri), None)

    def locate(self, span: Span, encoding: PositionEncoding) -> Located:
        """Where a span is; of one that leaves its part, what is in it."""
        part = self.part_of(span.start)
        start, end = span.start - part.start, min(span.end, part.end) - part.start
        ends = (part.document.position_at(place, encoding) for place in (start, end))
        return Located(part, types.Range(*(types.Position(*place) for place in ends)))

    def span_of(self, part: Part, given: types.Range, encoding: PositionEncoding) -> Span:
        """A range of a part as offsets in the text that is analysed."""
        return Span(*(self.offset_of(part, place, encoding) for place in (given.start, given.end)))

    def offset_of(self, part: Part, place: types.Position, encoding: PositionEncoding) -> int:
        """A position in a part as an offset in the text that is analysed."""
        position = Position(place.line, place.character)
        return part.start + part.document.offset_at(position, encoding)


class NotebookFile(View):
    """The view of a notebook that is not open: places are lines of its file."""

    def locate(self, span: Span, encoding: PositionEncoding) -> Located:
        """The lines of the file with a span, to the start of the next."""
        start = file_line(self.document, span.start) - 1
        end = file_line(self.document, span.end)
        return Located(self.parts[0], types.Range(types.Position(start, 0), types.Position(end, 0)))


def view_on_disk(uri: str, document: Document) -> View:
    """The view of a file that is not open."""
    kind = NotebookFile if document.kind is Kind.NOTEBOOK else View
    return kind.of_file(uri, document)


def joined(path: str, version: int | None, cells: Sequence[tuple[str, Document, str]]) -> View:
    """The view of documents that are read one after the other, each on lines of its own.

    Args:
        path: What the whole is called.
        version: The version of the whole.
        cells: Of each document its name, itself, and its text as Python, which is as long.
    """
    parts = []
    start = 0
    for uri, document, _ in cells:
        parts.append(Part(uri, document, start))
        start += len(document.text) + 1
    text = "\n".join(python for _, _, python in cells)
    language = cells[0][1].language if cells else None
    document = Document(path, text, version, language)
    # Lines are counted in each cell; the number of the cell is not shown.
    marks = [CellMark(part.start, index, 1, 0) for index, part in enumerate(parts, 1)]
    vars(document)["cell_marks"] = marks  # where cached_property keeps what it would compute
    return View(document, tuple(parts))
