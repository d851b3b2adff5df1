"""Reading files that a project brings along: regular ones, up to a size."""

import os
import stat
from pathlib import Path

MEGABYTE = 1_000_000


def read_regular(path: Path, megabytes: int) -> bytes:
    """What is in a file.

    A pipe would be waited for, a device may act on being opened, and some never end; so neither is
    opened.

    Args:
        path: The file, or a link to it.
        megabytes: How large it may be.

    Raises:
        OSError: It cannot be read; its `strerror` says why in a part of a sentence.
    """
    _require_regular(os.stat(path))  # noqa: PTH116 (pathlib's follows the same way, but slower)
    # What it is may change before it is opened.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _require_regular(os.fstat(file.fileno()))
        data = file.read(megabytes * MEGABYTE + 1)
    if len(data) > megabytes * MEGABYTE:
        raise OSError(0, f"it is larger than {megabytes} MB")
    return data


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(0, "Is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(0, "it is a pipe, a device or the like")
