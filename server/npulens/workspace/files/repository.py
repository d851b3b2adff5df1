"""Where git keeps what it knows of a folder, read without git: nothing named there is run."""

import os
import re
import stat
from typing import NamedTuple

_MOST_POINTER = 8_192
"""In bytes, of a file that holds a name or a path."""
_MOST_REFERENCES = 64_000_000
_MOST_STEPS = 5
"""So many names may follow each other."""
_OBJECT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_REFERENCE = re.compile(r"refs/[^\s~^:?*\[\\\x00-\x1f]+\Z")


class RepositoryError(Exception):
    """A repository does not say, in a form known here, which commit is checked out."""


class Repository(NamedTuple):
    """A working tree and where its history is.

    Attributes:
        root: The working tree, with all links resolved.
        folder: What belongs to this working tree: its index and what it has checked out.
        common: What it shares with other working trees: objects and names of commits.
    """

    root: str
    folder: str
    common: str

    @property
    def index_file(self) -> str:
        """The file that lists what git tracks."""
        return f"{self.folder}/index"


def read_plain(path: str, most: int) -> bytes | None:
    """What a plain file holds; nothing is waited for.

    Args:
        path: The file, which is no link.
        most: In bytes; of a larger file nothing is read.

    Returns:
        Its content, or `None` if there is no such file, or it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with os.fdopen(os.open(path, flags | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return None
            data = file.read(most + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= most else None


def repository_at(root: str) -> Repository | None:
    """The repository whose working tree is a folder, `None` if there is none.

    A submodule or a linked working tree names the folder of its repository in a file, which is
    followed once; what is read there are files of git and nothing else.
    """
    folder = f"{root}/.git"
    if not os.path.isdir(folder):  # noqa: PTH112
        named = _named(folder, "gitdir: ")
        if named is None:
            return None
        folder = os.path.join(root, named)  # noqa: PTH118
    common = _named(f"{folder}/commondir", "")
    shared = folder if common is None else os.path.join(folder, common)  # noqa: PTH118
    if not os.path.lexists(f"{folder}/HEAD"):
        return None
    return Repository(root, folder, shared)


def _named(file: str, start: str) -> str | None:
    """The path that a file of git holds behind a word."""
    text = read_plain(file, _MOST_POINTER)
    if text is None:
        return None
    named = os.fsdecode(text).rstrip("\r\n")
    if not named.startswith(start) or len(named) == len(start) or "\0" in named:
        return None
    return named[len(start) :]


def head_commit(repository: Repository) -> str | None:
    """The commit that is checked out, in hexadecimal digits; `None` before the first commit.

    Raises:
        RepositoryError: It cannot be found out.
    """
    name, folder = "HEAD", repository.folder
    for _ in range(_MOST_STEPS):
        data = read_plain(f"{folder}/{name}", _MOST_POINTER)
        if data is None:
            if os.path.lexists(f"{folder}/{name}") and not os.path.isdir(f"{folder}/{name}"):  # noqa: PTH112
                raise RepositoryError
            return _packed(repository, name)
        text = os.fsdecode(data).rstrip()
        if _OBJECT.match(text):
            return text
        name, folder = text.removeprefix("ref:").strip(), repository.common
        if not text.startswith("ref:") or not _REFERENCE.match(name) or ".." in name:
            break
        if os.path.isdir(f"{folder}/reftable"):  # noqa: PTH112
            raise RepositoryError
    raise RepositoryError


def _packed(repository: Repository, name: str) -> str | None:
    """The commit of a name among those that git keeps in one file."""
    if name == "HEAD":
        raise RepositoryError
    path = f"{repository.common}/packed-refs"
    data = read_plain(path, _MOST_REFERENCES)
    if data is None and os.path.lexists(path):
        raise RepositoryError
    found = re.search(
        rb"^([0-9a-f]{40,64}) %s\r?$" % re.escape(os.fsencode(name)), data or b"", re.M
    )
    return None if found is None else found[1].decode()
