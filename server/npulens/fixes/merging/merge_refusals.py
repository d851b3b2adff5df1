"""Why two projections stay two."""

from collections.abc import Callable

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.fixes.scripts import UnclearError


class MergeRefusedError(Exception):
    """Two projections stay two; lines are those of the text that was read.

    Attributes:
        line: Where that shows, counted from 1.
    """

    def __init__(
        self, line: int, name: MessageId, /, at: int | None = None, **values: object
    ) -> None:
        """Refuse.

        Args:
            line: Where that shows.
            name: The reason.
            at: Another line of the same text, which the reason names as `place`.
            values: What else the reason names.
        """
        super().__init__(name)
        self.line = line
        self._name: MessageId = name
        self._at = at
        self._values = values

    def told(self, line_of: Callable[[int], int]) -> UnclearError:
        """The reason for a user, who sees another text.

        Args:
            line_of: Says which line of that text a line of this one is.
        """
        values = self._values
        if self._at is not None:
            values = {**values, "place": message("merging.line", line=line_of(self._at))}
        return UnclearError(line_of(self.line), self._name, **values)
