"""Copying a tree of files, with what it says of links, and noticing when it changes meanwhile."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from npulens.workspace.files import folders
from npulens.workspace.files.tracked import Tracked, tracked_around

_NOT_COPIED = folders.HISTORY | folders.CACHES | {folders.LOG_FOLDER}
"""They belong to the folder that they are in."""


class Reason(str, Enum):
    """Why something of a tree is not in its copy."""

    LEADS_OUTSIDE = "leads-outside"
    LEADS_TO_LEFT_OUT = "leads-to-left-out"
    SPECIAL = "special"
    NOT_WANTED = "not-wanted"


class LeftOut(NamedTuple):
    """Something that is not copied.

    Attributes:
        path: Where it is, from the root of the tree.
        target: Where a link leads, as it says, or empty.
    """

    path: str
    reason: Reason
    target: str = ""


class TreeChangedError(Exception):
    """A file is not what it was when the copy began; the text is its path in the tree."""


class _Stamp(NamedTuple):
    mode: int
    size: int
    time: int
    target: str


@dataclass
class Inventory:
    """What a tree holds.

    Attributes:
        folders: Those to copy, each after the one that it is in, from the root of the tree.
        links: Those to make anew, with what they shall say.
        left_out: All others; of a folder nothing is named that is in it.
    """

    folders: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    stamps: dict[str, _Stamp] = field(default_factory=dict)


def inventory(root: Path) -> Inventory:
    """Look at everything in a tree that is a copy's business; nothing is opened.

    Raises:
        OSError: A folder cannot be read.
    """
    found = Inventory()
    links: dict[str, str] = {}
    for path, entry in _walk(root, found):
        status = entry.stat(follow_symlinks=False)
        target = ""
        if stat.S_ISLNK(status.st_mode):
            target = links[path] = os.readlink(entry.path)  # noqa: PTH115 (Path tidies it)
        elif stat.S_ISDIR(status.st_mode):
            found.folders.append(path)
        elif stat.S_ISREG(status.st_mode):
            found.files.append(path)
        else:
            found.left_out.append(LeftOut(path, Reason.SPECIAL))
        is_folder = stat.S_ISDIR(status.st_mode)
        size, time = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
        found.stamps[path] = _Stamp(status.st_mode, size, time, target)
    _sort_links(root, links, found)
    return found


def copy_tree(source: Path, destination: Path, found: Inventory) -> Iterator[str]:
    """Copy what an inventory names into a folder; yields the path of each file when it is there.

    Modes and times are kept; a folder gets its own when `finish_folders` is called, since it may
    forbid to write into it. Who looks meanwhile can see half a file, so this is for a folder that
    nobody knows yet.

    Args:
        source: The folder that is copied.
        destination: An empty folder.
        found: The inventory of the source.

    Raises:
        OSError: Something cannot be read or written.
        TreeChangedError: A file changed since the inventory.
    """
    for folder in found.folders:
        (destination / folder).mkdir()
    for file in found.files:
        _copy_file(source / file, destination / file, found.stamps[file], file)
        yield file
    for path, target in found.links.items():
        (destination / path).symlink_to(target)


def finish_folders(source: Path, destination: Path, found: Inventory) -> None:
    """Give the folders of a copy the modes and times of the source."""
    for folder in (*reversed(found.folders), ""):
        shutil.copystat(source / folder, destination / folder)


def require_unchanged(root: Path, before: Inventory) -> None:
    """See that a tree is what it was.

    Raises:
        TreeChangedError: It is not.
        OSError: A folder cannot be read.
    """
    stamps = inventory(root).stamps
    for path in sorted({*before.stamps, *stamps}):
        if before.stamps.get(path) != stamps.get(path):
            raise TreeChangedError(path)


def remove_tree(root: Path) -> None:
    """Remove a tree, also folders in it that forbid that.

    Raises:
        OSError: Something of it stays.
    """
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o700)
    shutil.rmtree(root)


def _walk(root: Path, found: Inventory) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What is in a tree, each folder before what it holds; those that are left out as one."""
    tracked = tracked_around(os.path.realpath(root))
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as iterator:
            entries = sorted(iterator, key=lambda entry: entry.name)
        subfolders = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name in _NOT_COPIED or _is_environment(entry.path, tracked):
                    found.left_out.append(LeftOut(path, Reason.NOT_WANTED))
                    continue
                subfolders.append(path)
            elif entry.name == ".git":  # of a linked working tree: it leads to the real one
                found.left_out.append(LeftOut(path, Reason.NOT_WANTED))
                continue
            yield path, entry
        pending += reversed(subfolders)


def _is_environment(folder: str, tracked: Tracked) -> bool:
    """Whether a folder belongs to this machine, and not to the project that it is in."""
    if tracked.has_folder(os.path.realpath(folder)):
        return False
    if os.path.basename(folder) in folders.ENVIRONMENTS and not folders.is_source(folder):  # noqa: PTH119
        return True
    return any(os.path.lexists(f"{folder}/{name}") for name in folders.ENVIRONMENT_MARKERS)


def _copy_file(source: Path, destination: Path, stamp: _Stamp, path: str) -> None:
    with source.open("rb") as reading, destination.open("xb") as writing:
        status = os.fstat(reading.fileno())
        if _Stamp(status.st_mode, status.st_size, status.st_mtime_ns, "") != stamp:
            raise TreeChangedError(path)
        shutil.copyfileobj(reading, writing, 1 << 20)
    shutil.copystat(source, destination)


def _sort_links(root: Path, links: Mapping[str, str], found: Inventory) -> None:
    """Which links lead to something that is copied, and what they say in the copy."""
    top = os.path.realpath(root)
    copied = {*found.folders, *found.files, *links, "."}
    for path, target in links.items():
        folder = os.path.dirname(f"{top}/{path}")  # noqa: PTH120
        # A link may lead through others, so that its words alone do not say where to.
        real = os.path.realpath(f"{folder}/{target}" if not os.path.isabs(target) else target)  # noqa: PTH117
        inside = os.path.relpath(real, top).replace(os.sep, "/")
        if inside == ".." or inside.startswith("../"):
            found.left_out.append(LeftOut(path, Reason.LEADS_OUTSIDE, target))
        elif inside not in copied and os.path.lexists(real):
            found.left_out.append(LeftOut(path, Reason.LEADS_TO_LEFT_OUT, target))
        elif _stays_inside(path, target):
            found.links[path] = target
        else:
            found.links[path] = os.path.relpath(real, os.path.realpath(folder))


def _stays_inside(path: str, target: str) -> bool:
    """Whether a link never leaves the tree on its way, so that it means the same in a copy."""
    if target.startswith("/") or os.path.isabs(target):  # noqa: PTH117
        return False
    parts = target.split("/")
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return up <= path.count("/") and ".." not in parts[up:]
