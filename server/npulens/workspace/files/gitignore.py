"""What git ignores: the `.gitignore` files of a tree, as a walk comes by them."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from npulens.text.regular_files import read_regular
from npulens.workspace.files.tracked import NOTHING_TRACKED, Tracked, tracked_in
from npulens.workspace.settings.path_patterns import Pattern, Patterns, read_pattern

IGNORE_FILE = ".gitignore"
_MEGABYTES = 1
"""Nobody writes a longer list."""
_NOT_LITERAL = re.compile(r"[*?/]+")


class _Patterns:
    """The patterns of one file; each is compiled once, when it may fit for the first time."""

    def __init__(self, text: str) -> None:
        lines = re.split(r"\r?\n", text)
        self._lines = [line for line in lines if line.strip() and line[0] != "#"]
        # What must be in a path that a pattern fits is looked for first: that is quick.
        self._words = [(_longest_literal(line), n) for n, line in enumerate(self._lines)]
        self._near: dict[tuple[int, ...], Patterns] = {}

    def ignores(self, path: str) -> bool | None:
        """Whether a path is ignored, from the folder of the file; `None` if no pattern fits it."""
        near = tuple([number for word, number in self._words if word in path])
        if not near:
            return None
        if near not in self._near:
            self._near[near] = Patterns(_valid(self._lines[number] for number in near))
        return self._near[near].ignores(path)


def _valid(lines: Iterable[str]) -> Iterator[Pattern]:
    for line in lines:
        with suppress(ValueError):  # git passes over such patterns too
            yield read_pattern(line)


def _longest_literal(line: str) -> str:
    """The longest part of a pattern without wildcards, before a class or escape."""
    plain = re.split(r"[\[\\]", line.rstrip().removeprefix("!"), maxsplit=1)[0]
    return max(_NOT_LITERAL.split(plain), key=len)


@dataclass(frozen=True, slots=True)
class Ignores:
    """What counts in a folder. What git tracks is never ignored, as git has it.

    Attributes:
        levels: Folders with the patterns that count below them, the innermost last.
        tracked: What git tracks in the repository that the folder belongs to.
        has_patterns: Whether `.gitignore` counts.
        is_ignored: Whether the folder is, but for what git tracks in it.
    """

    levels: tuple[tuple[str, _Patterns], ...] = ()
    tracked: Tracked = NOTHING_TRACKED
    has_patterns: bool = True
    is_ignored: bool = False

    def ignores(self, path: str) -> bool:
        """Whether git ignores a file."""
        if self.tracked.has_file(path):
            return False
        return self.is_ignored or self._fits(path)

    def below(self, folder: str) -> "Ignores | None":
        """What counts in a folder further down, `None` if git ignores all of it."""
        if not (self.is_ignored or self._fits(folder + "/")):
            return self
        return self.tracked_alone(folder)

    def tracked_alone(self, folder: str) -> "Ignores | None":
        """The same where nothing counts but what git tracks, `None` if that is nothing."""
        return replace(self, is_ignored=True) if self.tracked.has_folder(folder) else None

    def _fits(self, path: str) -> bool:
        """Whether a pattern means a path, which has a slash at its end if it is a folder."""
        for folder, patterns in reversed(self.levels):
            decision = patterns.ignores(path[len(folder) + 1 :].replace(os.sep, "/"))
            if decision is not None:
                return decision
        return False

    def inside(self, folder: str, names: Sequence[str]) -> "Ignores":
        """What counts in a folder with these names; another repository has its own rules."""
        found = self._of_repository(folder) if ".git" in names else self
        return found.with_file(folder, IGNORE_FILE) if IGNORE_FILE in names else found

    def _of_repository(self, folder: str) -> "Ignores":
        found = Ignores(tracked=tracked_in(folder), has_patterns=self.has_patterns)
        return found.with_file(folder, os.path.join(".git", "info", "exclude"))  # noqa: PTH118

    def with_file(self, folder: str, name: str) -> "Ignores":
        """The same with the patterns of another file, which counts from `folder` on."""
        if not self.has_patterns:
            return self
        folder = folder.rstrip(os.sep)
        path = Path(folder + os.sep + name)
        try:
            # Like git, not through a link, which could lead anywhere.
            if path.is_symlink():
                return self
            data = read_regular(path, _MEGABYTES)
        except OSError:
            return self
        text = data.decode("utf-8-sig", "surrogateescape")
        return replace(self, levels=(*self.levels, (folder, _Patterns(text))))


def ignores_above(folder: str, has_patterns: bool) -> Ignores:
    """What counts for a folder because of those above it, up to that of the repository.

    Of the patterns none, where it is in no repository, or is itself ignored: it was named all the
    same.

    Args:
        folder: Its path from the root, with all links resolved.
        has_patterns: Whether `.gitignore` counts.
    """
    found = Ignores(has_patterns=has_patterns)
    above: list[str] = []
    place = folder
    while not os.path.lexists(os.path.join(place, ".git")):  # noqa: PTH118
        parent = os.path.dirname(place)  # noqa: PTH120
        if parent == place:
            return found
        place = parent
        above.append(place)
    root = place
    for place, below in pairwise([*reversed(above), folder]):
        found = found.inside(place, [".git", IGNORE_FILE] if place == root else [IGNORE_FILE])
        if found._fits(below + "/"):
            return Ignores(tracked=found.tracked, has_patterns=has_patterns)
    return found
