"""A folder that comes into being as a whole, or not at all."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npulens.catalog.messages import LocalizedError, cannot_be_read, message
from npulens.workspace.files.copying import remove_tree
from npulens.workspace.files.leftovers import remove_leftovers
from npulens.workspace.files.locking import Lock


class PlaceError(LocalizedError):
    """A folder cannot be made where it is wanted; the text says why, in a part of a sentence."""


def require_place(source: Path, destination: Path) -> None:
    """See that a copy of a folder can be made where there is nothing, or an empty folder.

    Raises:
        PlaceError: It cannot.
    """
    old, new = os.path.realpath(source), os.path.realpath(destination)
    if old == new:
        raise PlaceError(message("place.is-source"))
    if new.startswith(old.rstrip(os.sep) + os.sep):
        raise PlaceError(message("place.in-source"))
    if old.startswith(new.rstrip(os.sep) + os.sep):
        raise PlaceError(message("place.holds-source"))
    if destination.is_symlink():
        raise PlaceError(message("place.is-link"))
    if destination.exists():
        require_empty(destination)
    elif not destination.parent.is_dir():
        raise PlaceError(message("place.no-parent", parent=destination.parent))


def require_empty(folder: Path) -> None:
    """See that something is an empty folder that another can replace.

    Raises:
        PlaceError: It is not.
    """
    if not folder.is_dir():
        raise PlaceError(message("place.is-file"))
    try:
        with os.scandir(folder) as entries:
            is_empty = next(entries, None) is None
    except OSError as error:
        raise PlaceError(cannot_be_read(error)) from error
    if not is_empty:
        raise PlaceError(message("place.not-empty"))
    if os.path.ismount(folder):
        raise PlaceError(message("place.is-mount-point"))


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
    folder.chmod(mode | 0o700)  # moving a folder writes into it
    folder.rename(destination)
    destination.chmod(mode)
