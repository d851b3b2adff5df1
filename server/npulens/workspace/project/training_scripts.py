"""The scripts of a project that train, so that the next command can name one."""

import re
from collections.abc import Iterable
from pathlib import Path

from npulens.text.kinds import Kind, kind_by_name

_BACKWARD = b".backward("
_ACTS = re.compile(rb"^(?:if __name__ ==|(?:for|while|with)\b|[A-Za-z_][\w.]*\()", re.MULTILINE)
_TESTS = re.compile(r"(?:\A|/)(?:tests?/|test_[^/]*\Z|[^/]*_test\.py\Z|conftest\.py\Z)")
_MAX_SIZE = 2_000_000
"""In bytes; nobody writes a larger script."""


def training_scripts(files: Iterable[Path], root: Path) -> list[Path]:
    """The files of a project that a user may start to train a model, in order."""
    return [path for path in files if _trains(path, root)]


def is_test(path: Path, root: Path) -> bool:
    """Whether a file of a project belongs to its tests, by its path from the project's folder."""
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    return _TESTS.search(inside.as_posix()) is not None


def _trains(path: Path, root: Path) -> bool:
    if kind_by_name(path.name) is not Kind.PYTHON or is_test(path, root):
        return False
    try:
        if path.stat().st_size > _MAX_SIZE:
            return False
        data = path.read_bytes()
    except OSError:
        return False
    return _BACKWARD in data and b"torch" in data and _ACTS.search(data) is not None
