"""The edits that lead from one text to another, line by line."""

from collections.abc import Iterable
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


def common_start(one: Iterable[str], other: Iterable[str]) -> int:
    """How many items, or characters, two have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lines(lines: LineMap) -> list[str]:
    """The lines with their endings; the last has none."""
    ends = [*lines.starts[1:], len(lines.text)]
    return [lines.text[start:end] for start, end in zip(lines.starts, ends, strict=True)]
