"""Writing files so that they are never half-written, and stay what they were."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from npulens.catalog.messages import LocalizedError, cannot_be_written, message
from npulens.workspace.files.owners import mark


class NotReplacedError(LocalizedError):
    """A file was left as it is; the text says why, in a part of a sentence."""


def write_whole(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file at once: who looks sees the old one or the new one, even after a crash.

    Args:
        path: The file, which need not be there. If it is a link, the link is replaced.
        data: What it shall hold.
        mode: Its permissions, or those of any new file.

    Raises:
        OSError: It cannot be written; what was there is still there.
    """
    handle, name = tempfile.mkstemp(prefix=f".npulens-{mark()}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_new_file_mode() if mode is None else mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def replace_content(path: Path, before: bytes, after: bytes) -> None:
    """Put `after` into a file that holds `before`; its links, owner and permissions stay.

    Raises:
        NotReplacedError: It holds something else by now, or cannot be written as it should.
    """
    # A symbolic link stays: the file that it leads to is replaced.
    target = Path(os.path.realpath(path))
    try:
        found = target.stat()
        if not found.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise NotReplacedError(message("error.read-only"))
        if found.st_nlink > 1:
            raise NotReplacedError(message("error.hard-links"))
        if target.read_bytes() != before:
            raise NotReplacedError(message("error.changed-meanwhile"))
        write_whole(target, after, stat.S_IMODE(found.st_mode))
        if hasattr(os, "chown"):
            with suppress(OSError):  # only root may give a file to somebody else
                os.chown(target, found.st_uid, found.st_gid)
    except OSError as error:
        raise NotReplacedError(cannot_be_written(error)) from error


def _new_file_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
