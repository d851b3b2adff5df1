"""One run at a time for a tree."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from npulens.workspace.files.owners import mark

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(handle: int) -> None:
        # Unlike flock, this is not passed on to the workers that the process forks.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


_locked: set[str] = set()
"""The files that this process holds; to open and close one of them would end its lock."""
_TAKEN = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
"""What the systems answer where another process has a lock."""


class LockedError(Exception):
    """Another run holds the lock."""


def is_locked(path: Path) -> bool:
    """Whether this process holds the lock of a file."""
    return os.path.realpath(path) in _locked


class Lock:
    """A lock that ends with its process, however that ends."""

    def __init__(self, path: Path) -> None:
        """Set up with a file that is there as long as the lock is held."""
        self._path = path
        self._handle = -1

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            LockedError: Another process has it.
            OSError: The file cannot be made.
        """
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
            try:
                _take(handle)
            except BaseException:
                os.close(handle)
                raise
            if _is_same_file(handle, self._path):
                self._handle = handle
                _locked.add(os.path.realpath(self._path))
                with suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.write(handle, mark().encode())
                return
            os.close(handle)  # whoever had the lock removed this file meanwhile

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _locked.discard(os.path.realpath(self._path))
        if sys.platform == "win32":  # removes no file that is open here, nor in another run
            os.close(self._handle)
        with suppress(OSError):
            self._path.unlink()
        if sys.platform != "win32":  # where a file of this name might be another run's by now
            os.close(self._handle)


def _take(handle: int) -> None:
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in _TAKEN:
            raise LockedError from error
        # Else it is a file system without locks.


def _is_same_file(handle: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False
