"""Standard output, which never holds up who writes to it."""

import os
import select
import sys
import threading
from collections import deque
from time import monotonic

_PORTION = 4096
"""Bytes that a pipe takes at once where it takes any."""
_MOST_UNSENT = 200_000_000
"""Bytes; a client that has left so many unread is taken for gone."""


class Pipe:
    """Writes at once what the client has room for; a thread writes the rest, in order.

    A client that does not read until it has written, or for a while, would else stop the server:
    the loop would wait for the client, and the client for the loop.
    """

    def __init__(self, descriptor: int) -> None:
        """Set up; the thread starts when it is needed first."""
        self._descriptor = descriptor
        self._unsent: deque[memoryview] = deque()
        self._unsent_size = 0
        self._is_broken = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Have bytes written.

        Raises:
            BrokenPipeError: Nobody reads any more.
        """
        view = memoryview(data)
        with self._changed:
            if self._is_broken or self._unsent_size > _MOST_UNSENT:
                raise BrokenPipeError
            is_first = not self._unsent_size
        while is_first and view and self._has_room():
            view = view[os.write(self._descriptor, view[:_PORTION]) :]
        if view:
            self._leave_to_thread(view)

    def close(self) -> None:
        """It is closed with the process."""

    def finish(self, seconds: float = 1.0) -> None:
        """Wait until all is written, but not long."""
        ends = monotonic() + seconds
        with self._changed:
            while self._unsent_size and not self._is_broken and monotonic() < ends:
                self._changed.wait(ends - monotonic())

    def _has_room(self) -> bool:
        if sys.platform == "win32":  # where only sockets can be polled
            return False
        return bool(select.select([], [self._descriptor], [], 0)[1])

    def _leave_to_thread(self, view: memoryview) -> None:
        with self._changed:
            self._unsent.append(view)
            self._unsent_size += len(view)
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="npulens-output", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unsent)
                view = self._unsent[0]
            try:
                while view:
                    written = os.write(self._descriptor, view)
                    view = view[written:]
                    self._note(written)
            except OSError:
                with self._changed:
                    self._is_broken = True
                    self._unsent.clear()
                    self._changed.notify_all()
                return
            with self._changed:
                self._unsent.popleft()

    def _note(self, written: int) -> None:
        with self._changed:
            self._unsent_size -= written
            self._changed.notify_all()
