"""Edits that are small enough to be read in a row of a preview.

A preview has a row for each edit, which shows what goes and what comes one behind the other, and
ends where the window does: of whole lines, or of several, what comes is out of sight.
"""

import re
from collections.abc import Iterator

from npulens.catalog.model import Edit
from npulens.fixes.fix_differences import common_start
from npulens.text.spans import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_INSIDE_A_WORD = re.compile(r"(?<=\w)(?=\w)")


def small_edits(text: str, edit: Edit) -> list[Edit]:
    """Edits that do the same, each of the words in a line that differ, where the lines are alike.

    Where lines come or go, or become others, they belong together and the edit is left as it is.
    """
    old, new = _LINE.findall(text[edit.span.start : edit.span.end]), _LINE.findall(edit.replacement)
    if len(old) != len(new):
        return [edit]
    return [*_line_by_line(edit.span.start, old, new)] or [edit]


def _line_by_line(start: int, old: list[str], new: list[str]) -> Iterator[Edit]:
    """Nothing where a line does not resemble the one that it becomes."""
    pairs = [*zip(old, new, strict=True)]
    if not all(_is_alike(*pair) for pair in pairs):
        return
    for before, after in pairs:
        if before != after:
            first, last = _same_ends(before, after)
            span = Span(start + first, start + len(before) - last)
            yield Edit(span, after[first : len(after) - last])
        start += len(before)


def _is_alike(before: str, after: str) -> bool:
    """Whether half of a line stays what it is, and how it ends."""
    if _ending(before) != _ending(after):
        return False
    before, after = before.strip(), after.strip()
    return 2 * sum(_same_ends(before, after)) >= min(len(before), len(after))


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _same_ends(before: str, after: str) -> tuple[int, int]:
    """How much two lines have in common at their start and at their end, in whole words."""
    first = common_start(before, after)
    while first and (_splits_a_word(before, first) or _splits_a_word(after, first)):
        first -= 1
    last = common_start(before[first:][::-1], after[first:][::-1])
    while last and any(_splits_a_word(line, len(line) - last) for line in (before, after)):
        last -= 1
    return first, last


def _splits_a_word(line: str, at: int) -> bool:
    return _INSIDE_A_WORD.match(line, at) is not None
