"""Which line of the user's file a line of its migrated copy comes from."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from npulens.text.decoding import UndecodableSource, decode_source


class OriginalLines:
    """Looks up lines; files are compared when they are first asked for."""

    def __init__(self, original: Path, copy: Path) -> None:
        """Set up with the two folders."""
        self._original = original
        self._copy = copy
        self._lines: dict[str, list[int]] = {}

    def line(self, path: str, line: int) -> int:
        """The line in the original; of lines that were replaced, the one in the same place."""
        if path not in self._lines:
            self._lines[path] = self._compare(path)
        lines = self._lines[path]
        return lines[line - 1] if 0 < line <= len(lines) else line

    def _compare(self, path: str) -> list[int]:
        try:
            before, after = (
                decode_source((folder / path).read_bytes()).text.splitlines()
                for folder in (self._original, self._copy)
            )
        except (OSError, UndecodableSource):
            return []
        return original_lines(before, after)


def original_lines(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """For each line of `after` the number, from 1, of the line of `before` that it comes from."""
    found: list[int] = []
    for _, start, end, new_start, new_end in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        last = max(start, end - 1)
        last = min(last, max(len(before) - 1, 0))
        found += [min(start + number, last) + 1 for number in range(new_end - new_start)]
    return found
