"""Which files and folders of a working tree git tracks."""

import os
from dataclasses import dataclass
from functools import lru_cache

from npulens.workspace.files.git_index import UnreadableIndexError, read_index
from npulens.workspace.files.repository import Repository, repository_at

_NO_PATHS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tracked:
    """What git tracks below a folder; nothing, where there is no git or it cannot be known.

    Attributes:
        root: The working tree, with all links resolved.
        files: The paths of the files from there, with slashes.
        folders: Those of the folders that hold them, and of submodules.
    """

    root: str = ""
    files: frozenset[str] = _NO_PATHS
    folders: frozenset[str] = _NO_PATHS

    def has_file(self, path: str) -> bool:
        """Whether git tracks a file, named by its path with all links resolved."""
        return bool(self.files) and self._inside(path) in self.files

    def has_folder(self, path: str) -> bool:
        """Whether git tracks something in a folder, named likewise."""
        return bool(self.folders) and self._inside(path) in self.folders

    def _inside(self, path: str) -> str:
        inside = path[len(self.root) + 1 :]
        return inside.replace(os.sep, "/") if os.sep != "/" else inside


NOTHING_TRACKED = Tracked()


def tracked_in(root: str) -> Tracked:
    """What git tracks in the working tree whose root is a folder, its links resolved."""
    repository = repository_at(root.rstrip(os.sep))
    if repository is None:
        return NOTHING_TRACKED
    try:
        status = os.lstat(repository.index_file)
    except OSError:
        return NOTHING_TRACKED
    return _read(repository, (status.st_mtime_ns, status.st_size, status.st_ino))


def tracked_around(folder: str) -> Tracked:
    """What git tracks in the working tree that a folder is in, its links resolved."""
    place = folder.rstrip(os.sep)
    while not os.path.lexists(f"{place}{os.sep}.git"):
        above = os.path.dirname(place)  # noqa: PTH120
        if above == place:
            return NOTHING_TRACKED
        place = above
    return tracked_in(place)


@lru_cache(maxsize=16)
def _read(repository: Repository, stamp: tuple[int, int, int]) -> Tracked:
    """The same, read again when the file of git is another."""
    try:
        entries = read_index(repository).entries
    except UnreadableIndexError:
        return NOTHING_TRACKED
    files = frozenset(entry.path for entry in entries)
    folders: set[str] = set()
    for entry in entries:
        folder = entry.path.rstrip("/") if entry.is_folder else entry.path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return Tracked(repository.root, files, frozenset(folders))
