"""What the files of a project hold: read once for all callers."""

import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

_MAX_SIZE = 2_000_000
"""In bytes; larger files are generated."""


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
        data = _read(path)
        content = Content(data, blake2b(data, digest_size=16).hexdigest())
        if path.endswith(".py"):
            self._modules[path] = content
        return content

    def modules(self, files: Iterable[Path]) -> Modules:
        """The Python files among some that hold anything."""
        found = {file: self.of(file) for file in files if file.name.endswith(".py")}
        return {file: content for file, content in found.items() if content.data}


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            data = stream.read(_MAX_SIZE + 1)
    except OSError:
        return b""
    return data if len(data) <= _MAX_SIZE else b""
