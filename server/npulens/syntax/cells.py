"""Cells of a notebook: Python with lines for IPython and for the shell in between."""

import re

from npulens.syntax.strings import LexicalState
from npulens.text.notebooks import SIGN, with_each_cell

_COMMAND = re.compile(r"[ \t]*(?:[%!]|\?{1,2}\w)")
_ASSIGNED = re.compile(r"[\w.,\s\[\]]+=[ \t]*([%!])")
_QUESTION = re.compile(r"[ \t]*[\w.%*]+\?{1,2}[ \t]*$")
_CELL_COMMAND = re.compile(r"\s*%%(\w+)")
_RUN_AS_PYTHON = frozenset({"time", "timeit", "capture", "prun", "python", "python3", "py"})

_INDENTED = re.compile(
    rf"^(#{SIGN}.*)(?=\n(?:[ \t]*(?:#(?!{SIGN}).*)?\n)*[ \t]+[^\s#])", re.MULTILINE
)
"""The mark of a cell whose first line with code is indented."""


def python_of_cell(text: str) -> str:
    """A cell with a constant where IPython would read a command; as long, with the same lines.

    `%matplotlib inline`, `!pip install`, `files = !ls` and `model?` become `0#...`, which is a
    statement wherever one may stand. Of a cell in another language (`%%bash`) nothing is left.
    """
    cell = _CELL_COMMAND.match(text)
    if cell is not None and cell[1] not in _RUN_AS_PYTHON:
        return re.sub(r"[^\r\n]", " ", text)
    if not any(sign in text for sign in "%!?"):
        return text
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    state = LexicalState()
    found = []
    continues = False
    for line in lines:
        if continues or not (state.quote or state.continued or state.depth):
            shown = _silenced(line, whole=continues)
            continues = shown is not line and line.rstrip("\r\n").endswith("\\")
            line = shown
        found.append(line)
        state.read(line)
    return "".join(found)


def python_of_notebook(text: str) -> str:
    """The same for the text of a notebook, cell by cell."""
    python = with_each_cell(text, python_of_cell)
    # IPython takes away the indentation of a first line. Here it gets a reason, of equal length.
    return _INDENTED.sub(lambda match: f"{'if 1:':{len(match[1])}}", python)


def _silenced(line: str, *, whole: bool) -> str:
    body = line.rstrip("\r\n")
    if whole:
        return " " * len(body) + line[len(body) :]
    start = -1
    if _COMMAND.match(body) or _QUESTION.match(body):
        start = len(body) - len(body.lstrip())
    elif (assigned := _ASSIGNED.match(body)) is not None:
        start = assigned.start(1)
    if start < 0:
        return line
    rest = re.sub(r"""["'\\]""", " ", body[start + 2 :])
    mark = "#" if len(body) > start + 1 else ""
    return body[:start] + "0" + mark + rest + line[len(body) :]
