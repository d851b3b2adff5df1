"""Words in texts of any language."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from npulens.text.spans import Span

_NAME = re.compile(r"[A-Za-z_]\w*")
_APART = bytes(c if c < 128 and (chr(c).isalnum() or chr(c) == "_") else 32 for c in range(256))
"""Blanks for all that is in no identifier of ASCII; twice as fast as the expression."""
_JOINED = bytes(c if c > 127 or c == _APART[c] else 32 for c in range(256))
"""The same, but other characters than those of ASCII are parts of identifiers."""


_RARE = frozenset("<>!~")
"""A single character is found thirty times as fast as several; these are rare enough for that."""


class Words:
    """What looks like an identifier in a text of any language, and where parts of the text are.

    The identifiers, each once, are a fraction of the text: they are searched before it.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """The identifiers, those of comments and strings included."""
        data = self.text.encode("utf-8", "replace")
        found = data.translate(_APART).decode().split()
        if not self.text.isascii():
            found += data.translate(_JOINED).decode("utf-8").split()
        return frozenset(found)

    @cached_property
    def joined(self) -> str:
        """The identifiers in lines."""
        return "\n".join(self.identifiers)

    def places_alone(self, word: str) -> Iterator[int]:
        """The places of a word that is no part of another, in order."""
        if word in self.identifiers:
            for place in self.places(word):
                end = place + len(word)
                if not is_part_of_word(self.text[place - 1 : place]) and not is_part_of_word(
                    self.text[end : end + 1]
                ):
                    yield place

    def some_of(self, parts: tuple[str, ...]) -> list[str]:
        """Those of some parts that may be in the text: their longest identifiers do."""
        whole, within = _by_identifier(parts)
        known, joined = self.identifiers, self.joined
        found = [part for part, identifier in whole if identifier in known]
        return found + [part for part, identifier in within if identifier in joined]

    def places(self, part: str) -> Iterator[int]:
        """Where a part of the text begins, in order."""
        whole, within = _identifiers_in(part)
        if not (whole <= self.identifiers and all(each in self.joined for each in within)):
            return
        mark = next((letter for letter in part if letter in _RARE), part)
        before = part.index(mark)
        place = self.text.find(mark)
        while place >= 0:
            start = place - before
            if mark is part or (start >= 0 and self.text.startswith(part, start)):
                yield start
            place = self.text.find(mark, place + 1)


@lru_cache(maxsize=32)
def _by_identifier(
    parts: tuple[str, ...],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Parts with their longest identifiers, those first that are one of the text as it is."""
    sorts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for part in parts:
        whole, within = _identifiers_in(part)
        longest = max((*whole, *within), key=len, default="")
        sorts[longest not in whole].append((part, longest))
    return sorts


@lru_cache(maxsize=1024)
def _identifiers_in(part: str) -> tuple[frozenset[str], frozenset[str]]:
    """The identifiers in a part: those that are some of a text as they are, and the others."""
    names = [(name[0], *name.span()) for name in _NAME.finditer(part)]
    whole = {
        name
        for name, start, end in names
        if start > 0 and end < len(part) and not part[start - 1].isdigit()
    }
    return frozenset(whole), frozenset(name for name, *_ in names) - whole


def word_at(text: str, offset: int) -> Span | None:
    """The letters, digits and underscores around a place, `None` if there are none."""
    start = end = offset
    while start and is_part_of_word(text[start - 1]):
        start -= 1
    while end < len(text) and is_part_of_word(text[end]):
        end += 1
    return Span(start, end) if start < end else None


def is_part_of_word(character: str) -> bool:
    """Whether a character, if there is one, is a letter, a digit or an underscore."""
    return character.isalnum() or character == "_"
