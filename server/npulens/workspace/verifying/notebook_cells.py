"""What of a notebook is run: the Python of its cells."""

from typing import NamedTuple

from npulens.syntax.cells import python_of_notebook
from npulens.text.lines import LineMap
from npulens.text.notebooks import cell_marks


class RunCell(NamedTuple):
    """A cell to be run.

    Attributes:
        line: The line of the text of all cells in which it starts, from 1.
        text: Its Python, with the line that marks it.
    """

    line: int
    text: str


def cells_to_run(text: str) -> list[RunCell]:
    """The cells of a text that `notebook_text` makes, without magics and commands for the shell."""
    python = python_of_notebook(text)  # as long, with the same lines
    starts = [text.rindex("\n", 0, mark.start - 1) + 1 for mark in cell_marks(text)[1:]]
    starts = [0, *starts] if python else []
    ends = [*starts[1:], len(python)]
    cells = []
    line = 1
    for start, end in zip(starts, ends, strict=True):
        cell = python[start:end]
        cells.append(RunCell(line, cell))
        line += len(LineMap(cell).starts) - 1
    return cells
