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

    def covers(self, other: "Span") -> bool:
        """Whether all of another one is in it."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: "Span") -> bool:
        """Whether edits of the two spans would conflict.

        - Two replacements conflict if they share text; touching is fine.
        - An insertion (an empty span) conflicts with a replacement only strictly inside it.
        - Two insertions conflict at the same place, since their order is not known. A caller for
          whom two identical edits are one drops the duplicate before the call.
        """
        return self == other or (self.start < other.end and other.start < self.end)


class Position(NamedTuple):
    """A place by line and column, both 0-based; the unit of the column is the caller's encoding."""

    line: int
    column: int
