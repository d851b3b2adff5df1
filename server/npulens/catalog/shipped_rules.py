"""The shipped rules: written in TOML, a file for each rule, and loaded in one compiled file.

TOML is pleasant to write and slow to read, so that all files are compiled into one of JSON. An
installed npulens has only that. In a checkout it is made at the first use, and again when a file
has changed.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from npulens.catalog.rule_file import CatalogueError, RuleFile, read_content, read_json

COMPILED = "compiled.json"
LIMITS = "native/limits.json"
"""What PyTorch's own APIs do on the NPU; generated, and JSON for its size."""


def rules_folder() -> Path:
    """Where the shipped rules are: in the package when installed, else in the repository."""
    here = Path(__file__).resolve()
    installed = here.parents[1] / "rules"
    return installed if installed.is_dir() else here.parents[3] / "rules"


def shipped_rules(folder: Path) -> list[RuleFile]:
    """All shipped rule files.

    Raises:
        CatalogueError: One cannot be read or breaks the format.
    """
    files = [RuleFile.of(content, label) for label, content in _contents(folder)]
    return [*files, RuleFile.read(folder / LIMITS, f"rules/{LIMITS}")]


def compiled(folder: Path) -> str:
    """The text of the compiled file.

    Raises:
        CatalogueError: A file cannot be read.
    """
    sources = _sources(folder)
    files = [(_label(path), read_content(path, _label(path))) for path in sources]
    made = {"stamp": _stamp(sources), "files": files}
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def _contents(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """The label and the content of each file."""
    sources, file = _sources(folder), folder / COMPILED
    if not sources and not file.is_file():
        raise CatalogueError(f"{folder}: no rule files found")
    if not sources:
        installed: Any = read_json(file, f"rules/{COMPILED}")
        return list(map(tuple, installed["files"]))
    with suppress(CatalogueError, KeyError, TypeError):  # one that is not there, or broken
        known: Any = read_json(file, f"rules/{COMPILED}")
        if known["stamp"] == _stamp(sources):
            return list(map(tuple, known["files"]))
    text = compiled(folder)
    with suppress(OSError):  # a checkout that cannot be written is compiled each time
        _write(file, text)
    return list(map(tuple, json.loads(text)["files"]))


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.toml"))


def _label(path: Path) -> str:
    return f"rules/{path.parent.name}/{path.name}"


def _stamp(sources: Sequence[Path]) -> list[list[object]]:
    """What changes with any of the files, and with the code that reads them."""
    code = sorted(Path(__file__).parent.glob("*.py"))
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
