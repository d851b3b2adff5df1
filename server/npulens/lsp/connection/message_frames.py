"""Messages cut out of a stream of bytes, as the base protocol frames them."""

import re
from collections.abc import Iterator

_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,20})\s*?$", re.IGNORECASE | re.MULTILINE)
_HEADER_END = re.compile(rb"\r?\n\r?\n")
LARGEST_HEADER = 8_192
LARGEST_MESSAGE = 200_000_000
"""In bytes; ten times the largest file that is read."""


class Frames:
    """Takes in bytes in whatever portions they come, and gives out the bodies of messages.

    Headers without a length are skipped; so is the body of a message that is too long.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._buffered = 0
        self._needed: int | None = None
        self._skipped = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that are whole with these bytes."""
        if self._skipped:
            dropped = min(self._skipped, len(data))
            self._skipped -= dropped
            data = data[dropped:]
        if not data:
            return
        self._parts.append(data)
        self._buffered += len(data)
        if self._needed is not None and self._buffered < self._needed:
            return  # joined once, when all of it is there
        buffer = b"".join(self._parts)
        start = 0
        while True:
            if self._needed is None:
                start = self._read_header(buffer, start)
            if self._needed is None or len(buffer) - start < self._needed:
                break
            yield buffer[start : start + self._needed]
            start += self._needed
            self._needed = None
        rest = buffer[start:]
        self._parts, self._buffered = ([rest] if rest else []), len(rest)

    def _read_header(self, buffer: bytes, start: int) -> int:
        """Set the length of the next body, if its header is whole; where that starts."""
        while (end := _HEADER_END.search(buffer, start)) is not None:
            length = _LENGTH.search(buffer[start : end.start()])
            start = end.end()
            if length is None or not int(length[1]):
                continue
            if int(length[1]) <= LARGEST_MESSAGE:
                self._needed = int(length[1])
                return start
            dropped = min(int(length[1]), len(buffer) - start)
            self._skipped = int(length[1]) - dropped
            start += dropped
        if len(buffer) - start > LARGEST_HEADER:
            start = len(buffer) - 4  # no header is so long; its end may have begun
        return start
