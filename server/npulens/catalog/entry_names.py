"""Entries of tables by their names: most are plain words, the others are expressions."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

_PLAIN = re.compile(r"[\w-]+(?:\|[\w-]+)*")
"""A word, or several to choose from: these are looked up, which compiles nothing."""
_MOST_REMEMBERED = 20_000


class Named(Protocol):
    """Something with an expression for its names."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


class EntryNames(Generic[Entry]):
    """Which of some entries a name is of; nothing is compiled before the first question.

    The entries are those of one place, in the order in which they count.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self._remembered: dict[str, list[Entry]] = {}

    def of(self, name: str) -> list[Entry]:
        """Those of a name, in their order; the same names occur in many files of a project."""
        known = self._remembered.get(name)
        if known is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[name] = self._looked_up(name)
        return known

    def _looked_up(self, name: str) -> list[Entry]:
        found = list(self._by_word.get(name, ()))
        if self._any.fullmatch(name) is not None:
            found += (i for i in self._expressions if re.fullmatch(self.entries[i].name, name))
        return [self.entries[index] for index in sorted(found)]

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, entry in enumerate(self.entries):
            for word in entry.name.split("|") if _PLAIN.fullmatch(entry.name) else ():
                places.setdefault(word, []).append(index)
        return places

    @cached_property
    def _expressions(self) -> list[int]:
        return [i for i, e in enumerate(self.entries) if _PLAIN.fullmatch(e.name) is None]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        """Matches what one of the expressions for names does."""
        names = (self.entries[index].name for index in self._expressions)
        return re.compile("|".join(f"(?:{name})" for name in names) or "(?!)")
