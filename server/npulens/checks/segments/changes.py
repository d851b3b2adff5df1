"""Which segments of a module have to be looked at again once its names have changed."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from npulens.checks.segments.segment import Segment
from npulens.syntax.values import Defined, Imported

_SEEN_FROM_AFAR = re.compile(
    r"\Atest|_(?:ref|reference|cpu|torch|native|pytorch|slow)\Z", re.IGNORECASE
)
"""Functions that count without being named: tests, and other ways beside one for CUDA."""

Values = tuple[tuple[object, ...], ...]


class Signature(NamedTuple):
    """The names of a module with their values: while it stays equal, so do findings.

    Attributes:
        stars: The modules of its star imports.
        names: What each name is bound to, and whether on a condition; with the places of the
            segments only where these differ.
    """

    stars: tuple[str, ...]
    names: dict[str, Values]


def module_signature(segments: Sequence[Segment]) -> Signature:
    """The signature of a module."""
    names: dict[str, list[tuple[object, ...]]] = {}
    stars: list[str] = []
    for index, segment in enumerate(segments):
        stars += segment.bindings.stars
        for name, found in segment.bindings.names.items():
            names.setdefault(name, []).append(
                (index, *((b.value, b.is_conditional) for b in found))
            )
    # Where a name is bound only once, the place of the statement does not matter.
    return Signature(
        tuple(stars),
        {
            name: tuple(found) if len(found) > 1 else (found[0][1:],)
            for name, found in names.items()
        },
    )


def words_affected(
    before: Signature, after: Signature, parts: Iterable[str], segments: Sequence[Segment]
) -> frozenset[str] | None:
    """Words such that segments without any of them mean what they meant; `None` if none is safe.

    `parts` has the names of functions and classes that changed in what they may compute.
    """
    if before.stars != after.stars:
        return None
    changed = {
        name
        for name in before.names.keys() | after.names.keys()
        if before.names.get(name) != after.names.get(name)
    }
    values = [v for name in changed for side in (before, after) for v in side.names.get(name, ())]
    if any(_SEEN_FROM_AFAR.search(name) for name in changed) or _matter_everywhere(values):
        return None
    affected = {*changed, *parts}
    mentions = [pair for segment in segments for pair in segment.mentions.items() if pair[1]]
    known = -1
    while known != len(affected):
        known = len(affected)
        affected.update(
            name.removeprefix(".") for name, words in mentions if not words.isdisjoint(affected)
        )
    return frozenset(affected)


def _matter_everywhere(values: Collection[object]) -> bool:
    """Whether imports are among some values, or classes of tests: checks look for these by kind."""
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, Imported):
            return True
        if isinstance(value, Defined) and any(n.startswith("test") for n, _ in value.members):
            return True
        if isinstance(value, tuple):
            pending += value
    return False
