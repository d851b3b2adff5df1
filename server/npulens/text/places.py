"""Places as people and other programs count them: from 1, columns in code points."""

from bisect import bisect_right
from typing import NamedTuple

from npulens.text.document import Document
from npulens.text.notebooks import CellMark


class Place(NamedTuple):
    """A place by line and column, both counted from 1."""

    line: int
    column: int


def place_at(document: Document, offset: int) -> Place:
    """The place of an offset, in a notebook in its cell; quick also in a very long line."""
    line = bisect_right(document.line_starts, offset)
    column = offset - document.line_starts[line - 1] + 1
    mark = _mark(document, offset)
    return Place(line if mark is None else line - _lines_before(document, mark), column)


def cell_at(document: Document, offset: int) -> int | None:
    """The number of the cell that an offset is in, from 1; `None` if it is in no notebook."""
    mark = _mark(document, offset)
    return None if mark is None else mark.number


def shown_place(document: Document, offset: int) -> str:
    """A place as it follows the path of a file: `12:5`, or `cell 3:12:5` in a notebook."""
    line, column = place_at(document, offset)
    cell = cell_at(document, offset)
    return f"{line}:{column}" if cell is None else f"cell {cell}:{line}:{column}"


def file_line(document: Document, offset: int) -> int:
    """The line of the file itself, which in a notebook is a line of JSON."""
    line = place_at(document, offset).line
    mark = _mark(document, offset)
    return line if mark is None else mark.file_line + (line - 1) * mark.step


def _mark(document: Document, offset: int) -> CellMark | None:
    marks = document.cell_marks
    if not marks:
        return None
    return marks[max(bisect_right(marks, (offset, 1 << 60, 0, 0)) - 1, 0)]


def _lines_before(document: Document, mark: CellMark) -> int:
    return bisect_right(document.line_starts, mark.start) - 1
