"""Where the lines of a text start.

A line ends at a line feed, a carriage return, or both together, and nowhere else: so say CPython's
parser and the language server protocol. `str.splitlines` also ends lines at form feeds, U+2028 and
others, which puts every later line number off by one.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any

from npulens.text.spans import Span

_LINE_ENDING = re.compile(r"\r\n?|\n")


class LineMap:
    """A text, or a segment of one, with the code-point offset at which each of its lines starts.

    `starts` has one offset per line and begins with 0; a text that ends with a line ending has one
    more, empty line. Nothing here changes after construction: treat `starts` as read-only.
    """

    __slots__ = ("_is_ascii", "starts", "text")

    def __init__(self, text: str, starts: list[int] | None = None) -> None:
        """Pass `starts` only if they are known to be those of `text`; else they are computed."""
        self.text = text
        self.starts = _line_starts(text) if starts is None else starts
        self._is_ascii = text.isascii()

    def offset(self, lineno: int, utf8_column: int) -> int:
        """The code-point offset of a place as an `ast` node gives it.

        Args:
            lineno: 1-based line, such as `node.lineno`.
            utf8_column: Bytes of UTF-8 before the place in its line, such as `node.col_offset`.
                It is not checked against the length of the line.

        Raises:
            IndexError: The text has fewer lines.
        """
        start = self.starts[lineno - 1]
        if self._is_ascii:
            return start + utf8_column
        segment = self.text[start : start + utf8_column]  # so many bytes hold no more code points
        if segment.isascii():
            return start + utf8_column
        before = segment.encode("utf-8", "surrogatepass")[:utf8_column]
        return start + len(before.decode("utf-8", "ignore"))

    def span(self, node: ast.AST) -> Span:
        """Where a node of a tree of this text is.

        Raises:
            IndexError: The text has fewer lines.
        """
        place: Any = node  # one that has a place, as all have but a few kinds
        start = self.offset(place.lineno, place.col_offset)
        return Span(start, self.offset(place.end_lineno or 0, place.end_col_offset or 0))

    def edited(self, span: Span, replacement: str) -> "LineMap":
        """The map of the text in which `replacement` replaces the text of `span`.

        Only line starts at the edit are searched for; the others are reused or moved, which is
        several times cheaper than reading a long text again.
        """
        start, end = span
        new_end = start + len(replacement)
        text = "".join((self.text[:start], replacement, self.text[end:]))
        # Whether a line starts at an offset depends on the character before it and the one at it
        # (is this the middle of a CRLF?), hence one more character on either side.
        first = max(start - 1, 0)
        near = (first + near_start for near_start in _line_starts(text[first : new_end + 1]))
        distance = new_end - end
        starts = self.starts[: bisect_left(self.starts, start)]
        starts += [place for place in near if start <= place <= new_end]
        starts += [place + distance for place in self.starts[bisect_right(self.starts, end) :]]
        return LineMap(text, starts)


def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        text = text.replace("\r\n", " \n").replace("\r", "\n")  # every length stays the same
    starts = [0, *accumulate([len(line) + 1 for line in text.split("\n")])]
    starts.pop()
    return starts


def line_ending(text: str) -> str:
    """What ends the lines of a text: what ends its first one, else a line feed."""
    found = _LINE_ENDING.search(text)
    return "\n" if found is None else found.group()
