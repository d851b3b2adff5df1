"""How the code of computations is recognized in its text: by words, and what is beside them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from npulens.catalog.model import PatternSource
from npulens.catalog.pattern_files import BESIDES

Reach = tuple[int, int]
"""Where a stretch of a text begins and ends."""
_MOST_STRETCHES = 100
_GAIN = re.compile(
    r"\*\s*\(?(?:1(?:\.0?)? \+ )?(?:self\.)?(?:weight|gamma|gain|scale)\b(?!\s*/)"
    r"|\b(?:weight|gamma|gain|scale)\s*\*(?!\*)"
)
_PASSED_ON = "turn"
"""Who calls a function that rotates names it, and the sine and cosine, and computes nothing."""


class Needs:
    """What code must hold so that one of some patterns can match it.

    Attributes:
        words: The words that patterns are recognized by.
    """

    def __init__(self, sources: Iterable[PatternSource]) -> None:
        self._by_word: dict[str, list[_Need]] = {}
        distinct = dict.fromkeys(_Need(source.words, source.beside) for source in sources)
        for need in distinct:
            for word in need.words:
                self._by_word.setdefault(word, []).append(need)
        self.words = tuple(sorted(self._by_word))

    def may_match(self, own: "Part", others: Sequence["Part"]) -> bool:
        """Whether a function can match, with what it uses.

        What one of the others holds all by itself is looked for there, unless the function adds to
        it.
        """
        parts = (own, *others)
        needs = {need for part in parts for word in part.words for need in self._by_word[word]}
        return any(need.is_met_by(parts) and _adds(own, need, others) for need in needs)


class _Need(NamedTuple):
    """One of the words, and all of what is beside it."""

    words: frozenset[str]
    beside: tuple[str, ...]

    def is_met_by(self, parts: Sequence["Part"]) -> bool:
        return any(not self.words.isdisjoint(part.words) for part in parts) and all(
            any(part.has(name) for part in parts) for name in self.beside
        )

    @property
    def is_of_norm(self) -> bool:
        """Whether it is about roots."""
        return any(name.startswith("root") for name in self.beside)

    def is_touched_by(self, part: "Part") -> bool:
        """Whether a part does some of it, and not only passes on what a rotation is given."""
        return not self.words.isdisjoint(part.words) or any(
            part.has(name) for name in self.beside if name != _PASSED_ON
        )


def _adds(own: "Part", need: _Need, others: Sequence["Part"]) -> bool:
    """Whether a function does some of it that none of the others does all of.

    What a norm of another module computes is found there; only a gain is multiplied elsewhere.
    """
    if need.is_of_norm and any(o.is_elsewhere for o in others) and need.is_met_by(others):
        return not need.words.isdisjoint(own.words) or own.names_gain
    return need.is_touched_by(own) or not any(need.is_met_by((other,)) for other in others)


class Part:
    """A stretch of a module that may hold a part of a computation.

    Args:
        words: The words that occur in it.
        text: A text of which it is a part.
        reaches: The stretches of the text.
        others: What it uses of the module; of very much not all is looked at.
        is_elsewhere: It is of another module.
    """

    __slots__ = ("_known", "_stretches", "_traits", "is_elsewhere", "words")

    def __init__(
        self,
        words: Iterable[str],
        text: str,
        reaches: Iterable[Reach],
        others: Iterable["Part"] = (),
        *,
        is_elsewhere: bool = False,
    ) -> None:
        self.is_elsewhere = is_elsewhere
        others = tuple(others)
        self.words: frozenset[str] = frozenset(words).union(*(other.words for other in others))
        stretches = dict.fromkeys((text, *reach) for reach in reaches)
        for other in others:
            if len(stretches) < _MOST_STRETCHES:
                stretches |= other._stretches
        self._stretches: dict[tuple[str, int, int], None] = stretches
        self._known: dict[str, bool] = {}
        self._traits: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        """Whether something of this name in `BESIDES` is in it."""
        known = self._known.get(name)
        if known is None:
            search = _expressions()[name].search
            known = any(search(*stretch) is not None for stretch in self._stretches)
            self._known[name] = known
        return known

    @property
    def names_gain(self) -> bool:
        """Whether it multiplies by what may be the gain of a norm."""
        return any(_GAIN.search(*stretch) is not None for stretch in self._stretches)

    def traits(self) -> frozenset[str]:
        """What it is recognized by: while that is the same, it counts as the same."""
        if self._traits is None:
            stretches = (text[start:end] for text, start, end in self._stretches)
            self._traits = self.words.union(*map(_beside, stretches))
        return self._traits


@lru_cache(maxsize=1024)
def _beside(text: str) -> frozenset[str]:
    """What of `BESIDES` is in a stretch; of a class in an editor, all but one are as before."""
    return frozenset(name for name, known in _expressions().items() if known.search(text))


@lru_cache(maxsize=1)
def _expressions() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(expression) for name, expression in BESIDES.items()}
