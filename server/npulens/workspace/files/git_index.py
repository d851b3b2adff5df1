"""The index of git, which lists what it tracks: read as data, in versions 2, 3 and 4."""

import hashlib
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from npulens.workspace.files.repository import Repository, read_plain

_MOST_BYTES = 64_000_000
"""Of the file, and of all paths in it together: half a million files."""
_MOST_PATH = 4_096
_HEADER = struct.Struct(">4sII")
_STATUS = struct.Struct(">10I")
_HASHES = (("sha1", 20), ("sha256", 32))
_SUBMODULE = 0o160000
_SPARSE_FOLDER = 0o040000
_KNOWN_PARTS = frozenset({b"sdir"})
"""Parts behind the entries that change what these mean, and that are understood here."""
_ASSUMED_SAME, _HAS_MORE_FLAGS, _STAGE = 0x8000, 0x4000, 0x3000
_NOT_CHECKED_OUT = 0x4000
"""Among the further flags."""


class UnreadableIndexError(Exception):
    """An index is damaged, too large, or in a form that is not known."""


class Entry(NamedTuple):
    """Something that git tracks.

    Attributes:
        path: From the root of the working tree, with slashes; of a folder with one at its end.
        mode: What it is, as git writes it.
        content: The name of its content, in hexadecimal digits.
        changed: When its status changed, in seconds and nanoseconds.
        modified: When its content changed, likewise.
        size: In bytes, modulo 2 to the power of 32.
        is_merging: Whether it is one of the versions that a merge left.
        is_trusted: Whether git is set not to look at the file.
    """

    path: str
    mode: int
    content: str
    changed: tuple[int, int]
    modified: tuple[int, int]
    size: int
    is_merging: bool
    is_trusted: bool

    @property
    def is_submodule(self) -> bool:
        """Whether it is a repository of its own, named by a commit."""
        return self.mode == _SUBMODULE

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder: a submodule, or one of which no file is checked out."""
        return self.mode in (_SUBMODULE, _SPARSE_FOLDER)


class Index(NamedTuple):
    """What an index holds.

    Attributes:
        hash_name: The hash function by which contents are named.
    """

    hash_name: str
    entries: list[Entry]


def read_index(repository: Repository) -> Index:
    """What git tracks in a working tree; nothing where it has no index yet.

    Raises:
        UnreadableIndexError: That cannot be known.
    """
    data = read_plain(repository.index_file, _MOST_BYTES)
    if data is None:
        if os.path.lexists(repository.index_file):
            raise UnreadableIndexError
        return Index("sha1", [])
    return parse_index(data)


def parse_index(data: bytes) -> Index:
    """The same of the bytes of an index.

    Raises:
        UnreadableIndexError: They are none.
    """
    hash_name, width = _hash_of(data)
    end = len(data) - width
    try:
        entries = list(_entries(data, end, width))
    except (struct.error, ValueError, IndexError) as error:
        raise UnreadableIndexError from error
    return Index(hash_name, entries)


def _hash_of(data: bytes) -> tuple[str, int]:
    """The hash function of a repository, known by the sum at the end of its index."""
    for name, width in _HASHES:
        end = data[-width:]
        if hashlib.new(name, data[:-width], usedforsecurity=False).digest() == end:
            return name, width
    if data[-20:] == bytes(20):  # git may leave the sum out
        return _HASHES[data[-32:] == bytes(32)]
    raise UnreadableIndexError


def _entries(data: bytes, end: int, width: int) -> Iterator[Entry]:
    """The entries one by one; raises `ValueError` and others where they are damaged."""
    signature, version, number = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError
    place, total, path = _HEADER.size, 0, b""
    for _ in range(number):
        start = place
        status = _STATUS.unpack_from(data, place)
        place += _STATUS.size
        content = data[place : place + width].hex()
        flags = int.from_bytes(data[place + width : place + width + 2], "big")
        place += width + 2
        more = 0
        if flags & _HAS_MORE_FLAGS:
            more = int.from_bytes(data[place : place + 2], "big")
            place += 2
        kept = b""
        if version == 4:
            cut, place = _number(data, place)
            if cut > len(path):
                raise ValueError
            kept = path[: len(path) - cut]
        stop = data.index(b"\0", place, end)
        path = kept + data[place:stop]
        place = stop + 1 if version == 4 else start + (stop - start + 8) // 8 * 8
        total += len(path)
        if place > end or total > _MOST_BYTES or not _is_path(path):
            raise ValueError
        yield Entry(
            os.fsdecode(path),
            status[6],
            content,
            (status[0], status[1]),
            (status[2], status[3]),
            status[9],
            bool(flags & _STAGE),
            bool(flags & _ASSUMED_SAME or more & _NOT_CHECKED_OUT),
        )
    _require_known_parts(data, place, end)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number written in as many bytes as it needs, and the place behind it."""
    byte = data[place]
    value = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        value = (value + 1) << 7 | byte & 0x7F
        if value > _MOST_BYTES:
            raise ValueError
    return value, place + 1


def _is_path(path: bytes) -> bool:
    """Whether it leads to something in the working tree, as all paths that git writes do."""
    if not path or len(path) > _MOST_PATH:
        return False
    if path[:1] != b"." and b"//" not in path and b"/." not in path and path[:1] != b"/":
        return True
    parts = path.removesuffix(b"/").split(b"/")
    return not any(part in (b"", b".", b"..", b".git") for part in parts)


def _require_known_parts(data: bytes, place: int, end: int) -> None:
    """See that no part behind the entries says that they mean something else."""
    while place < end:
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "big")
        place += 8 + size
        if place > end or not (b"A" <= name[:1] <= b"Z" or name in _KNOWN_PARTS):
            raise ValueError
