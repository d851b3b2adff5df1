"""Edits that leave the tree of a text as it is, since they are in a comment."""

import ast
from bisect import bisect_right

from npulens.syntax.splicing import first_line
from npulens.syntax.strings import LexicalState, comments
from npulens.text.differences import changed_part
from npulens.text.late_patterns import late
from npulens.text.lines import LineMap

_LINE_END = late(r"[\r\n]")
_NEVER_ALIKE = late(r"[\n\r\f\0\ud800-\udfff]")
"""What ends a line, and what no text may hold that is to be parsed."""


def is_in_comment(before: LineMap, body: list[ast.stmt], text: str) -> bool:
    """Whether a text differs from one before in a comment, or in blanks at the end of a line.

    The text before parses. This finds only a single line that ends a statement, or is outside of
    statements: no expression holds the comment then.
    """
    edited = changed_part(before.text, text)
    longer = len(text) - len(before.text)
    old, new = before.text[slice(*edited)], text[edited.start : edited.end + longer]
    if _NEVER_ALIKE.search(old + new):
        return False
    line = bisect_right(before.starts, edited.start)
    start = before.starts[line - 1]
    old_line = _line(before.text, start)
    is_within = edited.end <= start + len(old_line)
    if not is_within or _code(old_line) != _code(_line(text, start)):
        return False
    state = LexicalState()
    state.read(before.text[before.starts[_line_around(body, line) - 1] : start])
    if state.quote:
        return False
    state.read(old_line)
    return not (state.quote or state.depth or state.continued)


def _line(text: str, start: int) -> str:
    """The line that starts there, without its end."""
    end = _LINE_END.search(text, start)
    return text[start : end and end.start()]


def _code(line: str) -> str:
    """A line without its comment and the blanks at its end."""
    comment = next(comments(line), None)
    return line[: comment and comment.start].rstrip(" \t")


def _line_around(body: list[ast.stmt], line: int) -> int:
    """The first line of the innermost function or class that a line may be in, or one before."""
    around = 1
    while body:
        index = bisect_right(body, line, key=first_line) - 1
        if index < 0:
            break
        around = first_line(body[index])
        inner = body[index]
        body = inner.body if isinstance(inner, ast.ClassDef) else []
    return around
