"""The edits that lead from one text to another, line by line."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import takewhile

from npulens.catalog.model import Edit
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_MOST_LINES = 5_000
"""Between the first and the last that differ; more are replaced as one, since comparing is slow."""


def differences(before: str, after: str) -> tuple[Edit, ...]:
    """Edits of `before` that make it `after`, each of whole lines, in order."""
    if before == after:
        return ()
    old, new = LineMap(before), LineMap(after)
    old_lines, new_lines = _lines(old), _lines(new)
    first = common_start(old_lines, new_lines)
    last = common_start(old_lines[first:][::-1], new_lines[first:][::-1])
    old_middle = old_lines[first : len(old_lines) - last]
    new_middle = new_lines[first : len(new_lines) - last]
    blocks = [("replace", 0, len(old_middle), 0, len(new_middle))]
    if max(len(old_middle), len(new_middle)) <= _MOST_LINES:
        blocks = [*SequenceMatcher(None, old_middle, new_middle).get_opcodes()]
    starts = [*old.starts, len(before)]
    return tuple(
        Edit(
            Span(starts[first + old_start], starts[first + old_end]),
            "".join(new_middle[new_start:new_end]),
        )
        for kind, old_start, old_end, new_start, new_end in blocks
        if kind != "equal"
    )


def lines_in(text: str, other: str) -> Callable[[int], int]:
    """What says which line of another text a line of this one is, counted from 1.

    Of a line that is not there, it is the one that stands in its place.
    """
    place = LineMap(text).starts
    edits = differences(text, other)
    changed = [
        (
            bisect_left(place, edit.span.start),
            bisect_left(place, edit.span.end),
            len(LineMap(edit.replacement).starts) - 1,
        )
        for edit in edits
    ]

    def line_in_other(line: int) -> int:
        moved = 0
        for start, end, new in changed:
            if line <= start:
                break
            if line <= end:
                return start + moved + min(line - start, max(new, 1))
            moved += new - (end - start)
        return line + moved

    return line_in_other


def common_start(one: Iterable[str], other: Iterable[str]) -> int:
    """How many items, or characters, two have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lines(lines: LineMap) -> list[str]:
    """The lines with their endings; the last has none."""
    ends = [*lines.starts[1:], len(lines.text)]
    return [lines.text[start:end] for start, end in zip(lines.starts, ends, strict=True)]
