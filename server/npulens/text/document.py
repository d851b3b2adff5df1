"""A text with a name and a version, and the ways to say a place in it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from npulens.text.kinds import Kind, kind_of
from npulens.text.lines import LineMap
from npulens.text.notebooks import CellMark, cell_marks
from npulens.text.spans import Position, Span


class PositionEncoding(str, Enum):
    """The unit in which a column counts: bytes of UTF-8, units of UTF-16, or code points."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class TextChange(NamedTuple):
    """Replace the text from `start` to `end` by `text`; without places, replace everything."""

    start: Position | None
    end: Position | None
    text: str


@dataclass(frozen=True)
class Document:
    """One state of a text; an edit makes a new document.

    Attributes:
        path: The path as the user names it, or a URI.
        text: The text verbatim: line endings as they are, without a byte order mark.
        version: The editor's count of its states, if an editor has it open.
        language: The kind that the editor says it is, where the path does not show it.
    """

    path: str
    text: str
    version: int | None = None
    language: Kind | None = None

    @cached_property
    def kind(self) -> Kind:
        """What kind of file it is."""
        return self.language or kind_of(self.path, self.text)

    @cached_property
    def lines(self) -> LineMap:
        """The lines of the text, found when first needed."""
        return LineMap(self.text)

    @cached_property
    def cell_marks(self) -> list[CellMark]:
        """Where the cells of a notebook start; of any other text there are none."""
        return cell_marks(self.text) if self.kind is Kind.NOTEBOOK else []

    @property
    def line_starts(self) -> list[int]:
        """The code-point offset of each line's start; read-only."""
        return self.lines.starts

    @property
    def line_count(self) -> int:
        """The number of lines, at least 1; an empty line follows a final line ending."""
        return len(self.lines.starts)

    def line_text(self, line: int) -> str:
        """The text of a 0-based line without its line ending.

        Raises:
            IndexError: There is no such line.
        """
        starts = self.line_starts
        if not 0 <= line < len(starts):
            raise IndexError(f"line {line} of {len(starts)}")
        end = starts[line + 1] if line + 1 < len(starts) else len(self.text)
        return self.text[starts[line] : end].rstrip("\r\n")

    def position_at(
        self, offset: int, encoding: PositionEncoding = PositionEncoding.UTF32
    ) -> Position:
        """The position of a code-point offset, its column in units of `encoding`.

        An offset outside the text counts as the nearest end of the text, one between the halves of
        a CRLF as the end of its line.
        """
        offset = max(offset, 0)
        line = bisect_right(self.line_starts, offset) - 1
        before = self.text[self.line_starts[line] : offset].rstrip("\r\n")
        return Position(line, _units(before, encoding))

    def offset_at(
        self, position: Position, encoding: PositionEncoding = PositionEncoding.UTF32
    ) -> int:
        """The code-point offset of a position whose column is in units of `encoding`.

        A column beyond the line counts as the end of the line, one inside a character as its
        start, and a line beyond the text as the end of the text.
        """
        line, column = position
        if line < 0:
            return 0
        if line >= self.line_count:
            return len(self.text)
        return self.line_starts[line] + _fitting(self.line_text(line), max(column, 0), encoding)

    def edited(
        self,
        changes: Sequence[TextChange],
        encoding: PositionEncoding = PositionEncoding.UTF32,
        version: int | None = None,
    ) -> "Document":
        """The document after `changes`, made one after the other.

        As in the language server protocol, each change speaks of the text that the one before it
        left. Places are resolved as in `offset_at`; an end before its start counts as the start.
        """
        document = self
        for change in changes:
            if change.start is None or change.end is None:
                document = Document(self.path, change.text, version, self.language)
                continue
            start = document.offset_at(change.start, encoding)
            end = max(start, document.offset_at(change.end, encoding))
            document = _with_lines(
                document.lines.edited(Span(start, end), change.text), self, version
            )
        return document if changes else _with_lines(self.lines, self, version)


def _with_lines(lines: LineMap, before: Document, version: int | None) -> Document:
    document = Document(before.path, lines.text, version, before.language)
    vars(document)["lines"] = lines  # where cached_property keeps what it would compute
    return document


def _units(text: str, encoding: PositionEncoding) -> int:
    """The length of `text`; half a surrogate pair, which JSON can carry, is one unit of UTF-16."""
    if encoding is PositionEncoding.UTF32 or text.isascii():
        return len(text)
    if encoding is PositionEncoding.UTF16:
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def _fitting(text: str, units: int, encoding: PositionEncoding) -> int:
    """How many code points at the start of `text` lie wholly within so many units."""
    if encoding is PositionEncoding.UTF32 or text.isascii():
        return min(units, len(text))
    prefix_lengths = range(1, len(text) + 1)
    return bisect_right(prefix_lengths, units, key=lambda length: _units(text[:length], encoding))
