"""A folder that comes into being as a whole, or not at all."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npulens.workspace.files.copying import remove_tree
from npulens.workspace.files.leftovers import remove_leftovers
from npulens.workspace.files.locking import Lock


class PlaceError(Exception):
    """A folder cannot be made where it is wanted; the text says why, in a part of a sentence."""


def require_place(source: Path, destination: Path) -> None:
    """See that a copy of a folder can be made at a place.

    Args:
        source: The folder.
        destination: Where the copy is wanted: nothing, or an empty folder.

    Raises:
        PlaceError: It cannot.
    """
    old, new = os.path.realpath(source), os.path.realpath(destination)
    if old == new:
        raise PlaceError("is what is to be migrated; --in-place does that")
    if new.startswith(old.rstrip(os.sep) + os.sep):
        raise PlaceError("lies in the folder that is to be migrated; name one outside of it")
    if old.startswith(new.rstrip(os.sep) + os.sep):
        raise PlaceError("holds the folder that is to be migrated; name one beside it")
    if destination.is_symlink():
        raise PlaceError("is a link; name the folder itself")
    if destination.exists():
        require_empty(destination)
    elif not destination.parent.is_dir():
        raise PlaceError(f"cannot be made: there is no folder {destination.parent}")


def require_empty(folder: Path) -> None:
    """See that something is an empty folder that another can replace.

    Raises:
        PlaceError: It is not.
    """
    if not folder.is_dir():
        raise PlaceError("is a file; name a folder that is not there yet")
    try:
        with os.scandir(folder) as entries:
            is_empty = next(entries, None) is None
    except OSError as error:
        raise PlaceError(f"cannot be read: {error.strerror}") from error
    if not is_empty:
        raise PlaceError("is not empty; name a folder that is not there yet, or remove this one")
    if os.path.ismount(folder):
        raise PlaceError("is a mount point, which cannot be replaced; name a folder in it")


@contextmanager
def staging_folder(destination: Path) -> Iterator[Path]:
    """A new folder beside a destination, for what shall be put there when it is complete.

    It is removed at the end. What runs that were killed left behind is removed at the start, also
    where they made something else in the same place.

    Raises:
        LockedError: Another run makes the same destination.
        OSError: The folder cannot be made.
    """
    name = hashlib.sha256(os.fsencode(os.path.realpath(destination))).hexdigest()[:12]
    # Named as the user names it: what the path of a file says counts in its analysis.
    folder = destination.parent / f".npulens-{name}"
    with Lock(destination.parent / f".npulens-{name}.lock"):
        remove_leftovers([destination.parent])
        if folder.exists():
            remove_tree(folder)
        folder.mkdir()
        try:
            yield folder
        finally:
            with suppress(OSError):
                remove_tree(folder)


def put_in_place(folder: Path, destination: Path) -> None:
    """Let a folder be the destination, at once.

    Raises:
        PlaceError: There is something by now.
        OSError: It cannot be put there.
    """
    if destination.is_symlink() or destination.exists():
        require_empty(destination)
        destination.rmdir()
    mode = folder.stat().st_mode & 0o7777
    folder.chmod(mode | 0o700)  # moving a folder changes it: it is told where it is now
    folder.rename(destination)
    destination.chmod(mode)
