"""Where two versions of a text differ."""

from collections.abc import Callable

from npulens.text.spans import Span


def changed_part(before: str, after: str) -> Span:
    """The part of a text before that is not the same after, as small as it can be."""
    most = min(len(before), len(after))
    start = _same(most, lambda size: before.startswith(after[:size]))
    left = most - start
    end = _same(left, lambda size: not size or before.endswith(after[-size:]))
    return Span(start, len(before) - end)


def _same(most: int, fits: Callable[[int], bool]) -> int:
    """The largest size up to the most that fits, if all smaller ones do."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if fits(middle):
            low = middle
        else:
            most = middle - 1
    return low
