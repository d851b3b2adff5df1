"""The patterns by their operators, each file read where code may match.

To read all files takes longer than to check a small project, and what a project computes has the
operators of few. Which operators the patterns of the shipped files have is compiled beside them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.compiled_tables import CompiledTables
from npulens.catalog.model import PatternSource
from npulens.catalog.pattern_files import read_pattern_files
from npulens.catalog.shipped_rules import rules_folder
from npulens.fused.patterns import Pattern, patterns_of

_FLOORS = ("catalog", "text", "syntax", "graphs", "fused")
"""The code that reads patterns."""


class KnownPattern(NamedTuple):
    """What is known of a pattern before its file is read.

    Attributes:
        operator: What computes its result.
        traits: See `Pattern`, also for the order.
    """

    operator: str
    traits: int
    order: tuple[int, int]
    file: "_File"
    position: int

    @property
    def pattern(self) -> Pattern:
        """The pattern itself."""
        return self.file.patterns[self.position]


class _File:
    """A pattern file."""

    def __init__(self, source: PatternSource) -> None:
        self._source = source

    @cached_property
    def patterns(self) -> Sequence[Pattern]:
        return list(patterns_of(self._source))


@lru_cache(maxsize=4)
def known_patterns(sources: tuple[PatternSource, ...]) -> Mapping[str, Sequence[KnownPattern]]:
    """The patterns of several files by the operator that computes their result, in their order."""
    compiled = _compiled()
    known = [
        KnownPattern(operator, int(traits), (first, then), file, position)
        for source in sources
        for file in [_File(source)]
        for position, (operator, traits, first, then) in enumerate(
            compiled.get(_digest(source)) or map(_record, file.patterns)
        )
    ]
    found: dict[str, list[KnownPattern]] = {}
    for each in sorted(known, key=lambda each: each.order):
        found.setdefault(each.operator, []).append(each)
    return found


def pattern_tables(folder: Path) -> CompiledTables:
    """The records of the patterns of each file in a folder."""
    package = Path(__file__).parents[1]
    return CompiledTables(folder, "*.py", _records, tuple(package / name for name in _FLOORS))


def _compiled() -> Mapping[str, Sequence[tuple[str, str, int, int]]]:
    """The records of shipped files by digests of their texts; of a broken table nothing."""
    try:
        contents = pattern_tables(rules_folder() / "fused").contents()
        return {each["text"]: [_read(*record) for record in each["of"]] for _, each in contents}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _records(path: Path, label: str) -> object:
    (source,) = read_pattern_files([path])
    return {"text": _digest(source), "of": list(map(_record, patterns_of(source)))}


def _record(pattern: Pattern) -> tuple[str, str, int, int]:
    return pattern.root.operator, str(pattern.traits), *pattern.order


def _read(operator: Any, traits: Any, first: Any, then: Any) -> tuple[str, str, int, int]:
    return str(operator), str(int(traits)), int(first), int(then)


def _digest(source: PatternSource) -> str:
    text = f"{source.name}\0{source.text}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).hexdigest()
