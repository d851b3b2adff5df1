"""How far a long run is, for who looks at a terminal."""

import os
import sys
import time

_DELAY = 0.5
"""In seconds; what takes less needs no bar."""
_INTERVAL = 0.1
_WIDTH = 30


class Progress:
    """A bar on standard error, if that is a terminal that can erase a line."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._is_shown = False
        self._is_wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and total > 1
        self._next = time.monotonic() + _DELAY

    def advance(self) -> None:
        """One more file is done."""
        self._done += 1
        if not self._is_wanted:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._is_shown = True
            filled = _WIDTH * min(self._done, self._total) // self._total
            bar = "#" * filled + "." * (_WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K[{bar}] {self._done}/{self._total}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Make room for other output."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
