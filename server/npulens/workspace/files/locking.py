"""One run at a time for a tree."""

import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType

_locks: ModuleType | None
try:
    import fcntl as _locks
except ImportError:  # Windows, where two runs at once are not kept apart
    _locks = None


class LockedError(Exception):
    """Another run holds the lock."""


class Lock:
    """A lock that ends with its process, however that ends."""

    def __init__(self, path: Path) -> None:
        """Set up.

        Args:
            path: A file for the lock; it is there as long as the lock is held.
        """
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
                return
            os.close(handle)  # whoever had the lock removed this file meanwhile

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._path.unlink()
        os.close(self._handle)


def _take(handle: int) -> None:
    if _locks is None:
        return
    try:
        # Unlike flock, this is not handed on to the workers that the process forks.
        _locks.lockf(handle, _locks.LOCK_EX | _locks.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise LockedError from error
    except OSError:  # a file system without locks
        return


def _is_same_file(handle: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False
