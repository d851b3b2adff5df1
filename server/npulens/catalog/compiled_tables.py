"""Files in TOML that npulens brings, loaded in one compiled file.

TOML is pleasant to write and slow to read, so that all files of a folder are compiled into one of
JSON. An installed npulens has only that, or believes it. In a checkout it is made at the first use,
and again when a file has changed.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

COMPILED = "compiled.json"
_PACKAGE = Path(__file__).resolve().parents[1]


def data_folder(name: str) -> Path:
    """Where such files are: in the package when installed, else in the repository."""
    here = Path(__file__).resolve()
    installed = here.parents[1] / name
    return installed if installed.is_dir() else here.parents[3] / name


class CompiledTables(NamedTuple):
    """The files of a folder.

    Attributes:
        pattern: Which files below it.
        read: What a file holds, given its path and what errors call it.
        code: Folders of the code that reads them, beside this one.
    """

    folder: Path
    pattern: str
    read: Callable[[Path, str], object]
    code: tuple[Path, ...] = ()

    def contents(self) -> list[tuple[str, Any]]:
        """The label and the content of each file.

        Raises:
            OSError, ValueError: There are no files, nor is there the compiled one.
        """
        sources, file = self._sources(), self.folder / COMPILED
        if not sources or self._is_installed():
            return list(map(tuple, json.loads(file.read_bytes())["files"]))
        with suppress(OSError, ValueError, KeyError, TypeError):  # not there, or broken
            known = json.loads(file.read_bytes())
            if known["stamp"] == self._stamp(sources):
                return list(map(tuple, known["files"]))
        text = self.compiled()
        with suppress(OSError):  # a checkout that cannot be written is compiled each time
            _write(file, text)
        return list(map(tuple, json.loads(text)["files"]))

    def compiled(self) -> str:
        """The text of the compiled file; fails as `read` does."""
        sources = self._sources()
        labels = [f"{self.folder.name}/{s.relative_to(self.folder).as_posix()}" for s in sources]
        files = [(label, self.read(s, label)) for s, label in zip(sources, labels, strict=True)]
        made = {"stamp": self._stamp(sources), "files": files}
        return json.dumps(made, ensure_ascii=False, separators=(",", ":"))

    def _sources(self) -> list[Path]:
        return sorted(self.folder.glob(self.pattern))

    def _is_installed(self) -> bool:
        return _PACKAGE in self.folder.parents

    def _stamp(self, sources: Sequence[Path]) -> list[list[object]]:
        """What changes with any of the files, and with the code that reads them."""
        folders = dict.fromkeys((Path(__file__).parent, *self.code))
        code = [path for folder in folders for path in sorted(folder.glob("*.py"))]
        found = [(path, path.stat()) for path in (*sources, *code)]
        return [[path.name, stat.st_size, stat.st_mtime_ns] for path, stat in found]


def _write(file: Path, text: str) -> None:
    """Write a file as a whole: others may be reading it."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
