"""Removing what runs that were killed left behind."""

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from npulens.workspace.files.copying import remove_tree
from npulens.workspace.files.locking import Lock, LockedError, is_locked
from npulens.workspace.files.owners import is_gone
from npulens.workspace.files.repository import read_plain

_FILE = re.compile(r"\.npulens-(?:([0-9a-f]{8}-\d{1,10})-)?[a-z0-9_]{8}\Z")
_STAGING = re.compile(r"\.npulens-[0-9a-f]{12}\Z")
_LOCK = re.compile(r"\.npulens-(?:[0-9a-f]{12}\.lock|migrating)\Z")
_LONGEST_OWNER = 100


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove temporary files and folders of npulens that belong to no process from some folders.

    Whether a process of this machine runs is checked; what another one may have made, as on a
    shared disk, stays for a day. What cannot be removed stays too.
    """
    for folder in sorted(set(folders)):
        with suppress(OSError):
            for name in [each for each in os.listdir(folder) if each.startswith(".npulens-")]:  # noqa: PTH208
                with suppress(OSError, LockedError):
                    _remove(folder / name)


def _remove(path: Path) -> None:
    status = path.lstat()
    if found := _FILE.match(path.name):
        if stat.S_ISREG(status.st_mode) and is_gone(found[1] or "", status.st_mtime):
            path.unlink()
    elif _LOCK.match(path.name):
        if not stat.S_ISREG(status.st_mode) or is_locked(path):
            return
        owner = (read_plain(str(path), _LONGEST_OWNER) or b"").decode("utf-8", "replace")
        if is_gone(owner, status.st_mtime):
            with Lock(path):  # which removes its file in the end
                _remove_folder(path.with_suffix(""))
    elif not os.path.lexists(f"{path}.lock") and is_gone("", status.st_mtime):
        _remove_folder(path)


def _remove_folder(path: Path) -> None:
    if _STAGING.match(path.name) and path.is_dir() and not path.is_symlink():
        remove_tree(path)
