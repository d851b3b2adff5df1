"""What is known of the options of Megatron-LM, MindSpeed and the suites built on both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import TypeVar

from npulens.catalog.model import Applicability, LocalizedText, Rule, Severity

_Key = TypeVar("_Key")


class SuiteOwner(str, Enum):
    """Which suite brings an option."""

    MEGATRON = "Megatron-LM"
    MINDSPEED = "MindSpeed"
    LLM = "MindSpeed-LLM"
    MM = "MindSpeed-MM"


class Takes(str, Enum):
    """What stands behind an option."""

    NOTHING = "nothing"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """What holds for one option; there may be several entries for it.

    Conditions are options, `--swiglu`, or options with a value, `--normalization RMSNorm`;
    ` or ` is between those of which one is enough.

    Attributes:
        option: Its name with the dashes.
        needs: Conditions that have to hold where it is given.
        excludes: Conditions that must not.
        choices: The values that it takes; empty if others are right, too.
        renamed: Its name of today, or `None`.
        when: Conditions of which one tells that the release is one that this is true of; empty if
            it is true of all.
        profits: Conditions of which one says that it is worth giving.
        unless: Conditions under which it is not.
        marks: It is one of those by which a command of the suites is known.
        opens: More options may come from where it points to.
        fix: How safe it is to write `renamed`.
    """

    option: str
    owner: SuiteOwner
    rule: Rule
    needs: tuple[str, ...]
    excludes: tuple[str, ...]
    choices: tuple[str, ...]
    renamed: str | None
    when: tuple[str, ...]
    profits: tuple[str, ...]
    unless: tuple[str, ...]
    marks: bool
    opens: bool
    fix: Applicability
    severity: Severity | None
    note: LocalizedText | None
    source: str


@dataclass(frozen=True, slots=True)
class SuiteNames:
    """Options that are known by name.

    Attributes:
        owner: The suite of which they are, `None` for those of tools beside one.
        names: Without dashes, with spaces between.
    """

    owner: SuiteOwner | None
    takes: Takes
    names: str
    source: str


@dataclass(frozen=True)
class SuiteTable:
    """All options, those with an entry and those that are known by name alone."""

    entries: Mapping[str, tuple[SuiteEntry, ...]] = field(default_factory=dict)
    """By the name of the option."""
    names: Sequence[SuiteNames] = ()

    __hash__ = object.__hash__  # answers about one are remembered

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of options that take no value, at least in some release."""
        lists = (_with_dashes(each) for each in self.names if each.takes is Takes.NOTHING)
        return frozenset(chain.from_iterable(lists))

    @cached_property
    def known(self) -> frozenset[str]:
        """The names of all options."""
        return frozenset(chain(self.entries, *map(_with_dashes, self.names)))

    @cached_property
    def owners(self) -> Mapping[str, SuiteOwner]:
        """The names of the options of suites, but not of their tools."""
        found = {n: of.owner for of in self.names if of.owner for n in _with_dashes(of)}
        return found | {name: entries[0].owner for name, entries in self.entries.items()}

    @cached_property
    def by_spelling(self) -> Mapping[str, tuple[str, ...]]:
        """These names, by what is left of them without capitals and separators."""
        return _grouped(self.owners, plain_spelling)

    def nearly(self, name: str) -> Iterator[str]:
        """Those of these names that may be one letter off: a half of each is as it is here."""
        half = len(name) // 2 - 1
        start, end = name[:half], name[-half:]
        for length in range(len(name) - 1, len(name) + 2):
            for known in self._by_length.get(length, ()):
                if known.startswith(start) or known.endswith(end):
                    yield known

    @cached_property
    def _by_length(self) -> Mapping[int, tuple[str, ...]]:
        return _grouped(self.owners, len)

    @cached_property
    def hints(self) -> tuple[SuiteEntry, ...]:
        """The entries of options that are worth giving."""
        return tuple(e for entries in self.entries.values() for e in entries if e.profits)


def plain_spelling(name: str) -> str:
    """A name without capitals and separators: `usefusedrmsnorm`."""
    return name.lower().replace("-", "").replace("_", "")


def _with_dashes(names: SuiteNames) -> list[str]:
    return [f"--{name}" for name in names.names.split()]


def _grouped(names: Iterable[str], key: Callable[[str], _Key]) -> Mapping[_Key, tuple[str, ...]]:
    found: dict[_Key, list[str]] = {}
    for name in sorted(names):
        found.setdefault(key(name), []).append(name)
    return {of: tuple(alike) for of, alike in found.items()}
