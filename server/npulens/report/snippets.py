"""The lines around a fault, cut to what a page can show."""

from bisect import bisect_right
from typing import NamedTuple

from npulens.report.human import printable
from npulens.text.document import Document
from npulens.text.notebooks import SIGN
from npulens.text.places import place_at
from npulens.text.spans import Span

_MOST_SHOWN = 140
_MOST_BEFORE = 60
_MOST_MARKED = 90
"""In characters, of one line."""


class Line(NamedTuple):
    """One line as it is shown, of a notebook counted in its cell; `before` is all of others."""

    number: int
    before: str
    marked: str
    after: str


def line_of(document: Document, span: Span) -> Line:
    """The line in which a span starts, with the part of the span that is in it."""
    text, starts = document.text, document.line_starts
    number = place_at(document, span.start).line
    index = bisect_right(starts, span.start)  # not the same in a notebook, whose cells count anew
    first = starts[index - 1]
    last = starts[index] if index < len(starts) else len(text)
    while last > first and text[last - 1] in "\r\n":
        last -= 1
    end = min(max(span.end, span.start), last)
    begin = first + _indent(text, first, last)
    if span.start - begin > _MOST_BEFORE:
        begin = span.start - _MOST_BEFORE
        before = "…" + text[begin : span.start]
    else:
        before = text[min(begin, span.start) : span.start]
    marked = text[span.start : min(end, span.start + _MOST_MARKED)]
    room = max(_MOST_SHOWN - len(before) - len(marked), 0)
    after = text[end : min(end + room, last)] if end - span.start <= _MOST_MARKED else ""
    cut = "…" if span.start + len(marked) + len(after) < last else ""
    return Line(number, printable(before), printable(marked), printable(after) + cut)


def lines_around(document: Document, span: Span) -> tuple[Line, ...]:
    """The line with the fault between its neighbours that are not empty, with indentation."""
    text, starts = document.text, document.line_starts
    fault = line_of(document, span)
    index = bisect_right(starts, span.start)
    found = []
    for each in range(max(index - 1, 1), min(index + 1, len(starts)) + 1):
        number = fault.number + each - index
        first = starts[each - 1]
        last = starts[each] if each < len(starts) else len(text)
        if number != fault.number:
            shown = text[first : min(last, first + _MOST_SHOWN)].rstrip()
            if shown and not shown.startswith(f"#{SIGN}"):
                found.append(Line(number, printable(shown), "", ""))
        elif fault.before.startswith("…"):
            found.append(fault)
        else:
            indent = printable(text[first : first + _indent(text, first, last)])
            found.append(fault._replace(before=indent + fault.before))
    return tuple(_without_common_indent(found))


def _indent(text: str, first: int, last: int) -> int:
    line = text[first : min(last, first + _MOST_SHOWN)]
    return len(line) - len(line.lstrip(" \t"))


def _without_common_indent(lines: list[Line]) -> list[Line]:
    whole = [line for line in lines if (line.before + line.marked).strip()]
    indents = [len(line.before) - len(line.before.lstrip(" ")) for line in whole]
    common = min(indents, default=0)
    return [line._replace(before=line.before[common:]) for line in lines]
