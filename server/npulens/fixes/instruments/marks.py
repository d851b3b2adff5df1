"""The mark at the end of each line that an instrument puts into a script."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.apply import apply_edits
from npulens.syntax.strings import comments
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_LINE_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_MARK = re.compile(r"# npulens: instrument (?P<name>[\w-]+)\s*\Z")


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


def marked_lines(text: str) -> dict[int, str]:
    """The instruments whose lines are in a text, by the numbers of the lines, from 1."""
    if "# npulens: instrument " not in text:
        return {}
    starts = LineMap(text).starts
    found = {}
    for span in comments(text):
        match = _MARK.match(text[span.start : span.end])
        if match is not None:
            found[bisect_right(starts, span.start)] = match["name"]
    return found


def without(text: str, names: Iterable[str] | None = None) -> Removed:
    """A text without the lines of some instruments, or of all.

    What was put behind the last line of a text without a line end took that end along: the line
    before has none again.
    """
    wanted = None if names is None else set(names)
    found = {n: name for n, name in marked_lines(text).items() if wanted is None or name in wanted}
    edits = [*_removals(text, sorted(found))]
    return Removed(apply_edits(text, edits), tuple(edits), frozenset(found.values()), len(found))


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
