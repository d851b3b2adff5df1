"""Which lines of the user's code read standard input, which is empty in a verified run."""

import io
import sys
from typing import Any

from npulens_emulator.watch.record import Record


def watch_input(record: Record) -> None:
    """Note the lines from now on."""
    stream: Any = sys.stdin
    if stream is not None:
        sys.stdin = _Watched(stream.detach(), stream.encoding, record)


class _Watched(io.TextIOWrapper):
    def __init__(self, buffer: Any, encoding: str, record: Record) -> None:
        super().__init__(buffer, encoding)
        self._record = record

    def _note(self) -> None:
        place = self._record.place_of(sys._getframe(2))
        if place is not None:
            self._record.input_places.add(place)

    def read(self, size: int | None = -1) -> str:
        self._note()
        return super().read(size)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        self._note()
        return super().readline(size)

    def __next__(self) -> str:  # type: ignore[override]
        self._note()
        return super().__next__()
