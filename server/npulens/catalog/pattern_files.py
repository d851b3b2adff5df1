"""The texts of pattern files and the words they are about; what they mean is read elsewhere."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from npulens.catalog.model import PatternSource
from npulens.catalog.rule_file import CatalogueError

_WORDS = re.compile(r"^WORDS = (\(.*?\))$", re.MULTILINE | re.DOTALL)


def read_pattern_files(paths: Iterable[Path]) -> tuple[PatternSource, ...]:
    """Read pattern files.

    Raises:
        CatalogueError: One cannot be read or does not say its words.
    """
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> PatternSource:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    found = _WORDS.search(text)
    try:
        words = ast.literal_eval(found.group(1)) if found else None
    except (ValueError, SyntaxError):
        words = None
    if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
        raise CatalogueError(f"{path}: needs WORDS, a tuple of the words its code is told by")
    return PatternSource(path.name, text, frozenset(words))
