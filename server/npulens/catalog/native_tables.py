"""What is known of PyTorch's own APIs on the NPU, release by release."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from npulens.catalog.model import LocalizedText, Rule, Severity, TorchVersion

Versions = tuple[tuple[TorchVersion, TorchVersion], ...]
"""Ranges of releases, first and last included."""

TENSOR = "torch.Tensor"
TYPE_NAMES = {
    "float64": "float64",
    "double": "float64",
    "complex64": "complex64",
    "cfloat": "complex64",
    "complex128": "complex128",
    "cdouble": "complex128",
}
"""The types of tensors that limits may be about, by their names in `torch`."""


@dataclass(frozen=True, slots=True)
class LimitKind:
    """A way in which an API may fall short, and its wording.

    Attributes:
        rule: The rule that code breaks by it.
        severity: Overrides the rule's, or `None`.
        text: A template over `argument`, `values` and `instead`, or `None` if the rule says it all.
        on_device: Tensors that are made on the CPU do not have it.
        settled: The reason for which there is nothing to do; empty if there is.
    """

    kind: str
    rule: Rule
    severity: Severity | None
    text: LocalizedText | None
    on_device: bool = False
    settled: str = ""


@dataclass(frozen=True, slots=True)
class NativeLimit:
    """One limit of one API, always there or where an argument has a certain value.

    Attributes:
        versions: The releases that have it.
        argument: The parameter it is about, or `None`.
        position: The 0-based place of that parameter, or `None` if it is keyword-only.
        only: The values allowed; others break it.
        unlike: The values that break it.
        below: Numbers below it break it.
        above: Numbers above it break it.
        absent: The argument has to be given.
        given: The argument must not be given.
        dtypes: The limit is about tensors of these types only.
        instead: What to use instead, for the text.
    """

    kind: LimitKind
    versions: Versions
    argument: str | None = None
    position: int | None = None
    only: tuple[object, ...] = ()
    unlike: tuple[object, ...] = ()
    below: float | None = None
    above: float | None = None
    absent: bool = False
    given: bool = False
    dtypes: tuple[str, ...] = ()
    instead: str = ""

    @property
    def always(self) -> bool:
        """Whether each use of the API meets it."""
        return self.argument is None and not self.dtypes

    @property
    def note(self) -> LocalizedText | None:
        """The limit in words."""
        if self.kind.text is None:
            return None
        values = ", ".join(f"`{value!r}`" for value in self.only or self.unlike)
        words = {"argument": self.argument, "values": values, "instead": self.instead}
        return LocalizedText(*(text.format_map(words) for text in self.kind.text))


@dataclass(frozen=True, slots=True)
class NativeEntry:
    """What limits one API; one without limits is not in the table.

    Attributes:
        api: The qualified name; of a method, with its class.
        source: Where the facts were read.
    """

    api: str
    limits: tuple[NativeLimit, ...]
    source: str


@dataclass(frozen=True, slots=True)
class NativeTable:
    """All of it.

    Attributes:
        entries: By qualified name.
        aliases: Other names of entries.
        tensors: What returns a tensor: functions, classes, methods of `torch.Tensor`.
        verified: Every API the tables list and the releases in which they do, or `None` as long as
            nobody requested it.
    """

    entries: Mapping[str, NativeEntry] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    tensors: frozenset[str] = frozenset()
    verified: Mapping[str, Versions] | None = None
    words: frozenset[str] = field(init=False)
    """The last parts of the names."""
    triggers: frozenset[str] = field(init=False)
    """Of these at least one is in every statement with an entry that has limits."""
    oldest: TorchVersion = field(init=False)
    newest: TorchVersion = field(init=False)

    def __post_init__(self) -> None:
        names = [*self.entries, *self.aliases]
        ends = [
            end
            for entry in self.entries.values()
            for limit in entry.limits
            for span in limit.versions
            for end in span
        ]
        triggers = {_trigger(e.api, e) for e in self.entries.values()}
        triggers |= {_trigger(alias, self.entries[api]) for alias, api in self.aliases.items()}
        if self.verified is not None:
            triggers.add("torch")
        dtypes = {d for e in self.entries.values() for limit in e.limits for d in limit.dtypes}
        dtypes |= {name for name, dtype in TYPE_NAMES.items() if dtype in dtypes}
        object.__setattr__(self, "words", frozenset(name.rpartition(".")[2] for name in names))
        object.__setattr__(self, "triggers", frozenset(triggers | dtypes) - {""})
        object.__setattr__(self, "oldest", min(ends, default=TorchVersion(0, 0)))
        object.__setattr__(self, "newest", max(ends, default=TorchVersion(0, 0)))

    def entry(self, qualified: str) -> NativeEntry | None:
        """What limits a name, whichever of its spellings this is."""
        return self.entries.get(self.aliases.get(qualified, qualified))

    def listed_as(self, parts: Sequence[str]) -> Iterator[str]:
        """The names in the tables that may be meant by one: PyTorch offers much at several paths.

        Of `torch.nn.parameter.Parameter` it is `torch.nn.Parameter`: the parts of the one are among
        those of the other, in the same order. What belongs to a listed name, or holds one, counts.
        """
        by_end = _by_last_part(tuple(self.verified or ()))
        for length in range(len(parts), 1, -1):
            for name in by_end.get(parts[length - 1], ()):
                other = name.split(".")
                if _is_among(parts[:length], other) or _is_among(other, parts[:length]):
                    yield name
        prefix = ".".join(parts) + "."
        yield from (name for name in self.verified or () if name.startswith(prefix))

    def listed(self, version: TorchVersion) -> TorchVersion:
        """The release whose table counts for a target: itself, or the nearest that has one."""
        return min(max(version, self.oldest), self.newest)


@lru_cache(maxsize=4)
def _by_last_part(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.rpartition(".")[2], []).append(name)
    return found


def _is_among(parts: Sequence[str], others: Sequence[str]) -> bool:
    """Whether all parts are there in the same order, and the rest are modules and no classes."""
    rest = iter(others)
    is_class = any(other[:1].isupper() for other in others if other not in parts)
    return not is_class and all(part in rest for part in parts)


def includes(versions: Versions, version: TorchVersion) -> bool:
    """Whether a release is in one of the ranges."""
    return any(first <= version <= last for first, last in versions)


def _trigger(name: str, entry: NativeEntry) -> str:
    """A word that code with this name holds; none where only its types of tensors matter.

    Any part of the name will do: code contains all of them, or a name of the module represents
    them. Methods of tensors have common names such as `mode`, but then with a dot before them.
    """
    if all(limit.dtypes for limit in entry.limits):
        return ""
    owner, _, last = name.rpartition(".")
    if owner == TENSOR:
        return f".{last}"
    parts = name.split(".")[1:]
    if len(parts) > 1 and parts[-2].lstrip("_")[:1].isupper():
        parts.pop()  # a member: the class says more
    return next((part for part in reversed(parts) if part not in _COMMON), last)


_COMMON = frozenset(
    {"Graph", "Linear", "Module", "Node", "compile", "disable", "dynamic", "enable", "enabled"}
    | {"events", "is_available", "is_enabled", "load", "mark", "narrow", "nn", "norm", "reset"}
    | {"save", "strategy"}
)
"""Parts of names that occur in much other code; another part of the name serves as well."""
