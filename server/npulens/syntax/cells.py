"""Cells of a notebook: Python with lines for IPython and for the shell in between."""

import re
from collections.abc import Iterator

from npulens.syntax.parsing import module_tree
from npulens.syntax.strings import LexicalState
from npulens.text.late_patterns import late
from npulens.text.notebooks import SIGN, cell_marks, cell_sources, with_each_cell
from npulens.text.spans import Span

_COMMAND = late(r"[ \t]*(?:[%!]|\?{1,2}\w)")
_ASSIGNED = late(r"[\w.,\s\[\]]+=[ \t]*([%!])")
_QUESTION = late(r"[ \t]*[\w.%*]+\?{1,2}[ \t]*$")
_BARE = late(
    r"^[ \t]*(?:cat|cd|conda|cp|ls|mamba|mkdir|mv|pip|rm|rmdir)[ \t]+[^\s=(]",
    re.MULTILINE,
)
"""Commands that IPython knows without `%`, with something behind them."""
_CELL_COMMAND = late(r"\s*%%(\w+)")
_RUN_AS_PYTHON = frozenset({"time", "timeit", "capture", "prun", "python", "python3", "py"})
_SHELL_CELL = late(r"\s*%%(?:bash|sh|script[ \t]+(?:ba)?sh)\b[^\n]*\n")
_TO_SHELL = late(r"!!?|%?(?=(?:pip|conda|mamba)\b)")

_INDENTED = late(rf"^(#{SIGN}.*)(?=\n(?:[ \t]*(?:#(?!{SIGN}).*)?\n)*[ \t]+[^\s#])", re.MULTILINE)
"""The mark of a cell whose first line with code is indented."""


def python_of_cell(text: str) -> str:
    """A cell with a constant where IPython would read a command; as long, with the same lines.

    `%matplotlib inline`, `!pip install`, `files = !ls`, `cd ..` and `model?` become `0#...`, which
    is a statement in any place. Of a cell in another language (`%%bash`) nothing is left.
    """
    if _is_in_other_language(text):
        return _blank(text)
    python = ""
    position = 0
    for start, end in _commands(text):
        python += text[position:start] + _as_constant(text[start:end])
        position = end
    return python + text[position:]


def python_of_notebook(text: str) -> str:
    """The same for the text of a notebook, cell by cell."""
    python = with_each_cell(text, python_of_cell)
    # IPython takes away the indentation of a first line. Here it gets a reason, of equal length.
    return _INDENTED.sub(lambda match: f"{'if 1:':{len(match[1])}}", python)


def shell_of_notebook(text: str) -> Iterator[Span]:
    """What IPython runs in a shell, each part by itself: `!pip install`, `%pip install`, cells."""
    for mark, cell in zip(cell_marks(text), cell_sources(text), strict=True):
        script = _SHELL_CELL.match(cell)
        if script is not None:
            yield Span(mark.start + script.end(), mark.start + len(cell))
        elif not _is_in_other_language(cell):
            for start, end in _commands(cell):
                sign = _TO_SHELL.match(cell, start, end)
                if sign is not None:
                    yield Span(mark.start + sign.end(), mark.start + end)


def _is_in_other_language(cell: str) -> bool:
    command = _CELL_COMMAND.match(cell)
    return command is not None and command[1] not in _RUN_AS_PYTHON


def _commands(cell: str) -> Iterator[Span]:
    """The commands of a cell, with the lines on which a backslash goes on with them."""
    if not any(sign in cell for sign in "%!?") and _BARE.search(cell) is None:
        return
    state = LexicalState()
    start: int | None = None
    at = 0
    for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", cell):
        body = line.rstrip("\r\n")
        if start is None and not (state.quote or state.continued or state.depth):
            found = _start_of_command(body)
            start = at + found if found is not None else None
        if start is None:
            state.read(line)
        elif not body.endswith("\\"):
            yield Span(start, at + len(body))
            start = None
        at += len(line)
    if start is not None:
        yield Span(start, at)


def _start_of_command(line: str) -> int | None:
    if _COMMAND.match(line) or _QUESTION.match(line) or _is_bare_command(line):
        return len(line) - len(line.lstrip())
    assigned = _ASSIGNED.match(line)
    return assigned.start(1) if assigned is not None else None


def _is_bare_command(line: str) -> bool:
    """Whether IPython would read a line as a command without `%`: it is no Python."""
    if _BARE.match(line) is None:
        return False
    try:
        module_tree(line.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False


def _as_constant(command: str) -> str:
    first, end, others = re.split(r"([\r\n]|\Z)", command, maxsplit=1)
    rest = re.sub(r"""["'\\]""", " ", first[2:])
    return "0" + "#"[: len(first) - 1] + rest + end + _blank(others)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)
