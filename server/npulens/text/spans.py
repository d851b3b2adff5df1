"""Places in a text."""

from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of code-point offsets into a document's text.

    Offsets count code points from the start of the text (a byte order mark is not part of it).
    """

    start: int
    end: int

    def shifted(self, distance: int) -> "Span":
        """The same span in a text that has `distance` more code points before it."""
        return Span(self.start + distance, self.end + distance)

    def overlaps(self, other: "Span") -> bool:
        """Whether the two share text, or are insertions at the same place."""
        if self.start == self.end or other.start == other.end:
            return self.start <= other.end and other.start <= self.end and (
                self == other or (other.start < self.start < other.end or self.start < other.start < self.end)
            )
        return self.start < other.end and other.start < self.end


class Position(NamedTuple):
    """A place by line and column, both 0-based; the unit of the column is the caller's encoding."""

    line: int
    column: int
