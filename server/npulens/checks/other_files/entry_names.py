"""Entries of tables by their names: most are plain words, the others are expressions."""

import re
from collections.abc import Sequence
from functools import lru_cache

from npulens.catalog.tables import LaunchEntry

_PLAIN = re.compile(r"[\w-]+(?:\|[\w-]+)*")
"""A word, or several to choose from: these are looked up, which compiles nothing."""


class EntryNames:
    """Which of some entries a name is of.

    Args:
        entries: The entries of one place, in the order in which they count.
    """

    def __init__(self, entries: Sequence[LaunchEntry]) -> None:
        self._entries = entries
        self._by_word: dict[str, list[int]] = {}
        self._expressions: list[int] = []
        for index, entry in enumerate(entries):
            if _PLAIN.fullmatch(entry.name) is None:
                self._expressions.append(index)
            else:
                for word in entry.name.split("|"):
                    self._by_word.setdefault(word, []).append(index)
        self._any = any_of(tuple(entries[index].name for index in self._expressions))

    def of(self, name: str) -> list[LaunchEntry]:
        """Those of a name, in their order."""
        found = list(self._by_word.get(name, ()))
        if self._any.fullmatch(name) is not None:
            found += (i for i in self._expressions if re.fullmatch(self._entries[i].name, name))
        return [self._entries[index] for index in sorted(found)]


@lru_cache(maxsize=64)
def any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Matches what one of the expressions for names does."""
    return re.compile("|".join(f"(?:{name})" for name in names) or "(?!)")
