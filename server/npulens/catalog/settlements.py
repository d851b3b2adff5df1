"""Why nothing is to be done about a place: reasons by name, and what settles one place."""

from typing import NamedTuple

from npulens.text.spans import Span


class Settlement(NamedTuple):
    """Why nothing is to be done about something that belongs to NVIDIA's world.

    Attributes:
        reason: The name of a reason in `rules/verdicts/reasons.json`.
        span: What decides, such as a condition or the statement for the NPU beside it; `None` if
            the place itself does.
    """

    reason: str
    span: Span | None = None

    def shifted(self, distance: int) -> "Settlement":
        """The same in a text that has `distance` more code points before it."""
        return self if self.span is None else self._replace(span=self.span.shifted(distance))
