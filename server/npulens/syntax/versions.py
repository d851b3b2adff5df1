"""Syntax that is newer than the Python npulens runs on."""

import re
import sys

_NEWER: tuple[tuple[tuple[int, int], re.Pattern[str]], ...] = (
    ((3, 11), re.compile(r"\s*except\s*\*")),
    (
        (3, 12),
        re.compile(r"\s*(?:(?:async\s+)?def|class)\s+\w+\s*\[|\s*type\s+\w+\s*(?:\[.*\]\s*)?="),
    ),
    ((3, 14), re.compile(r".*\b(?:t|rt|tr)[\"']|\s*except\s+[\w.]+\s*,.*:", re.IGNORECASE)),
)


def newer_syntax(line: str) -> tuple[int, int] | None:
    """The Python version that first reads a line which this one does not, if it looks so."""
    for version, pattern in _NEWER:
        if sys.version_info < version and pattern.match(line):
            return version
    return None
