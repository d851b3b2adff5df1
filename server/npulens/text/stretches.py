"""Stretches of a text, and whether a place is in one of them."""

from bisect import bisect_right
from collections.abc import Iterable

from npulens.text.spans import Span


class Stretches:
    """Spans in order, with those made one that overlap or touch."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        for span in sorted(spans):
            self.add(span)

    def add(self, span: Span) -> None:
        """Take in one more."""
        kept = self._spans
        first = bisect_right(kept, span.start, key=lambda each: each.start)
        if first and kept[first - 1].end >= span.start:
            first -= 1
        last = first
        while last < len(kept) and kept[last].start <= span.end:
            last += 1
        if last > first:
            end = max(span.end, kept[last - 1].end)
            span = Span(min(span.start, kept[first].start), end)
        kept[first:last] = [span]

    def contains(self, span: Span) -> bool:
        """Whether a place is in one of them as a whole."""
        index = bisect_right(self._spans, span.start, key=lambda each: each.start) - 1
        return index >= 0 and span.end <= self._spans[index].end
