"""What the files of a project hold: read once for all callers."""

import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

_MAX_SIZE = 2_000_000
"""In bytes; larger files are generated."""


Stamp = tuple[int, int]
"""Time and size of a file, which change when it does."""


class Content(NamedTuple):
    """The bytes of a file, and a digest of them."""

    data: bytes
    digest: str

    @property
    def text(self) -> str:
        """The text as far as it can be read; what cannot be is reported when checked."""
        return self.data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


Modules = Mapping[Path, Content]
"""The Python files of a project."""


class Contents:
    """Reads files, and keeps those of Python, which several need."""

    def __init__(self) -> None:
        self._modules: dict[str, Content] = {}

    def of(self, file: Path | str) -> Content:
        """The content of a file; nothing of one that is large or cannot be read."""
        path = os.path.abspath(file)  # noqa: PTH100 (of thousands)
        known = self._modules.get(path)
        if known is not None:
            return known
        data = read(path)
        content = Content(data, blake2b(data, digest_size=16).hexdigest())
        if path.endswith(".py"):
            self._modules[path] = content
        return content

    def modules(self, files: Iterable[Path]) -> Modules:
        """The Python files among some that hold anything."""
        found = {file: self.of(file) for file in files if file.name.endswith(".py")}
        return {file: content for file, content in found.items() if content.data}


def read(path: str) -> bytes:
    """The bytes of a file; none of one that is large or cannot be read, as its own check says."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            data = stream.read(_MAX_SIZE + 1)
    except OSError:
        return b""
    return data if len(data) <= _MAX_SIZE else b""


def stamp(path: Path | str) -> Stamp | None:
    """The stamp of a file, `None` if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a Path for each of thousands costs more)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
