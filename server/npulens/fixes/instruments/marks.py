"""The mark at the end of each line that an instrument puts into a script.

A `with` that carries a mark was put around statements, which were only indented: they get their
indentation back. A line that became another is kept in a comment before it.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.apply import apply_edits
from npulens.fixes.scripts import UnclearError
from npulens.syntax.parsing import module_tree
from npulens.syntax.strings import comments
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_LINE_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_MARK = re.compile(r"# npulens: instrument (?P<name>[\w-]+)(?P<old> instead of: )?")
_WITH = re.compile(r"[ \t]*with ")


class Mark(NamedTuple):
    """A line of an instrument.

    Attributes:
        name: The instrument.
        original: Where the line that it stands for begins, if it keeps one in a comment.
    """

    name: str
    original: int | None


class Removed(NamedTuple):
    """A text without the lines of instruments.

    Attributes:
        edits: The edits that take them out.
        names: The instruments that were in it.
        lines: How many lines went.
    """

    text: str
    edits: tuple[Edit, ...]
    names: frozenset[str]
    lines: int


def marked(line: str, name: str) -> str:
    """A line with the mark of an instrument."""
    return f"{line}  # npulens: instrument {name}"


def replaced_line(old: str, new: str, name: str, ending: str) -> str:
    """A line that becomes another, and is kept in a comment before it."""
    code = old.lstrip(" \t")
    indentation = old[: len(old) - len(code)]
    return (
        f"{indentation}# npulens: instrument {name} instead of: {code}{ending}{marked(new, name)}"
    )


def marked_lines(text: str) -> dict[int, str]:
    """The instruments whose lines are in a text, by the numbers of the lines, from 1."""
    return {number: mark.name for number, mark in _marks(text).items()}


def _marks(text: str) -> dict[int, Mark]:
    if "# npulens: instrument " not in text:
        return {}
    starts = LineMap(text).starts
    found = {}
    for span in comments(text):
        match = _MARK.search(text, span.start, span.end)
        if match is not None:
            original = match.end() if match["old"] else None
            found[bisect_right(starts, span.start)] = Mark(match["name"], original)
    return found


def without(text: str, names: Iterable[str] | None = None) -> Removed:
    """A text without the lines of some instruments, or of all.

    What was put behind the last line of a text without a line end took that end along: the line
    before has none again.

    Raises:
        UnclearError: Statements in a `with` that was put around them have changed so
            that they cannot be taken out of it.
    """
    wanted = None if names is None else set(names)
    found = {n: m for n, m in _marks(text).items() if wanted is None or m.name in wanted}
    kept = {number: mark for number, mark in found.items() if mark.original is not None}
    gone = sorted(found.keys() - kept.keys())
    lines = LineMap(text)
    edits = [*_removals(text, gone), *_uncovered(lines, gone), *_restored(lines, kept)]
    all_names = frozenset(mark.name for mark in found.values())
    return Removed(apply_edits(text, edits), tuple(edits), all_names, len(found))


def _restored(lines: LineMap, kept: Mapping[int, Mark]) -> Iterator[Edit]:
    """The edits that make code of the lines that are kept in comments."""
    for number, mark in kept.items():
        start = lines.starts[number - 1]
        content = lines.text[start : mark.original]
        indentation = len(content) - len(content.lstrip(" \t"))
        yield Edit(Span(start + indentation, mark.original or start), "")


def _uncovered(lines: LineMap, gone: Sequence[int]) -> Iterator[Edit]:
    """The edits that take statements out of each `with` that goes."""
    opening = [n for n in gone if _WITH.match(lines.text, lines.starts[n - 1])]
    if not opening:
        return
    rows = frozenset(gone)
    for node in nodes_below(script_tree(lines.text)):
        if not isinstance(node, ast.With) or node.lineno not in opening:
            continue
        first = _content(lines, node.body[0].lineno)
        unit = "\t" if first[node.col_offset : node.col_offset + 1] == "\t" else "    "
        for number in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1):
            content = _content(lines, number)
            if number in rows or not content.strip():
                continue
            if not content.startswith(unit):
                raise UnclearError(number, "instrument.moved-since")
            start = lines.starts[number - 1]
            yield Edit(Span(start, start + len(unit)), "")


def script_tree(text: str) -> ast.Module:
    """The tree of a script.

    Raises:
        UnclearError: It does not parse.
    """
    try:
        return module_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnclearError(line, "instrument.does-not-parse") from error


def _content(lines: LineMap, number: int) -> str:
    starts = lines.starts
    return lines.text[starts[number - 1] : starts[number] if number < len(starts) else None]


def _removals(text: str, numbers: Sequence[int]) -> Iterator[Edit]:
    """The edits that take out lines; of several in a row one."""
    starts = [*LineMap(text).starts, len(text)]
    first, rows = None, frozenset(numbers)
    for number in numbers:
        first = number if first is None else first
        if number + 1 in rows:
            continue
        start, end = starts[first - 1], starts[number]
        if end == len(text) and number == len(starts) - 1:
            ending = _LINE_END.search(text[:start])
            start -= 0 if ending is None else len(ending[0])
        yield Edit(Span(start, end), "")
        first = None
