"""Reading files that a project brings along: regular ones, up to a size."""

import errno
import os
import stat
from pathlib import Path

from npulens.text.unreadable import UnsuitableFile

MEGABYTE = 1_000_000


def read_regular(path: Path, megabytes: int) -> bytes:
    """What is in a file, or in what a link leads to, of so many megabytes at most.

    A pipe would be waited for, a device may act on being opened, and some never end; so neither is
    opened.

    Raises:
        OSError: It cannot be read.
    """
    _require_regular(os.stat(path))  # noqa: PTH116 (pathlib's follows the same way, but slower)
    # What it is may change before it is opened.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _require_regular(os.fstat(file.fileno()))
        data = file.read(megabytes * MEGABYTE + 1)
    if len(data) > megabytes * MEGABYTE:
        raise UnsuitableFile("too-large", megabytes=megabytes)
    return data


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise UnsuitableFile("special")
