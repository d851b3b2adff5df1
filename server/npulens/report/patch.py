"""Changes as a patch in the format of git, for `git apply`."""

import os
from collections.abc import Iterator
from difflib import unified_diff

from npulens.fixes.fix_differences import common_start

_CONTEXT = 3
_MOST_COMPARED = 20_000
"""Of more lines, the first to the last change are one hunk: to compare them is quadratic."""


def patch(path: str, before: bytes, after: bytes) -> bytes:
    """The patch that turns a file from `before` into `after`.

    It names a file below the current folder from there.
    """
    name = _relative(path)
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    header = f"diff --git {old} {new}\n--- {_ended(old)}\n+++ {_ended(new)}\n"
    # In Latin-1 each byte is a character, so that nothing is lost whatever the encoding.
    hunks = "".join(_hunks(_lines(before.decode("latin-1")), _lines(after.decode("latin-1"))))
    return header.encode() + hunks.encode("latin-1")


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    if min(len(before), len(after)) > _MOST_COMPARED:
        yield from map(_whole_line, _one_hunk(before, after))
        return
    lines = unified_diff(before, after, n=_CONTEXT)
    next(lines, None)  # the names of the files, which are there already
    next(lines, None)
    yield from map(_whole_line, lines)


def _one_hunk(before: list[str], after: list[str]) -> Iterator[str]:
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    first = max(start - _CONTEXT, 0)
    follow = min(end, _CONTEXT)
    old = before[start : len(before) - end]
    new = after[start : len(after) - end]
    behind = before[len(before) - end : len(before) - end + follow]
    size = start - first + follow
    yield f"@@ -{first + 1},{size + len(old)} +{first + 1},{size + len(new)} @@\n"
    yield from (f" {line}" for line in before[first:start])
    yield from (f"-{line}" for line in old)
    yield from (f"+{line}" for line in new)
    yield from (f" {line}" for line in behind)


def _whole_line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines as git counts them, which a line feed ends and nothing else."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _relative(path: str) -> str:
    """The path from the current folder, or from the root where it leads elsewhere."""
    relative = os.path.relpath(path)
    if relative.startswith(os.pardir):
        relative = os.path.abspath(path).lstrip(os.sep)  # noqa: PTH100
    return relative.replace(os.sep, "/")


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes where it has more than plain characters."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return name
    return '"' + "".join(map(_escaped, os.fsencode(name))) + '"'


def _escaped(byte: int) -> str:
    character = chr(byte)
    if " " <= character <= "~" and character not in '"\\':
        return character
    return f"\\{byte:03o}"


def _ended(name: str) -> str:
    """A tab says where a name with spaces ends."""
    return f"{name}\t" if " " in name and not name.startswith('"') else name
