"""Reading TOML that a project brings along."""

import re
import sys
from typing import Any

from npulens.text.unreadable import Unreadable

_MOST_PARTS = 100
"""Of a dotted key; the parser needs time and memory to the square of their number."""
_TOKEN = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[\w-]+|\S')


class UnsuitableToml(Unreadable, ValueError):  # noqa: N818
    """A text would take too long to read as TOML."""


def parse_toml(text: str) -> dict[str, Any]:
    """What a text in TOML holds.

    Raises:
        ValueError: It is no TOML, or nested too deeply.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_PARTS and _most_parts(line) > _MOST_PARTS:
            raise UnsuitableToml("long-key", line=number, parts=_MOST_PARTS)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UnsuitableToml("deep-toml") from error


def _most_parts(line: str) -> int:
    """The parts of the longest dotted key, or of what looks like one."""
    most = parts = 0
    is_part = False
    for token in _TOKEN.findall(line):
        if token == ".":
            is_part = False
            continue
        parts = 1 if is_part else parts + 1
        is_part = True
        most = max(most, parts)
        if token in "=,[]{}#":
            parts, is_part = 0, False
    return most
