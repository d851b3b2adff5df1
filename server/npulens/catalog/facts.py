"""What the tables know of one name: the question behind a hover and a completion."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from npulens.catalog.model import LocalizedText, Rule, TorchVersion
from npulens.catalog.native_table import read_verified
from npulens.catalog.native_tables import NativeLimit, NativeTable, Versions, includes
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.tables import Catalogue


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """What the support tables say of an API, for releases in a row that they say the same of.

    Attributes:
        first: The first of these releases.
        last: The last of them.
        listed: The tables have it.
        limits: What limits it there.
    """

    first: TorchVersion
    last: TorchVersion
    listed: bool
    limits: tuple[NativeLimit, ...]


@dataclass(frozen=True, slots=True)
class NameFacts:
    """What is known of a qualified name or an environment variable.

    Attributes:
        name: The name as the tables spell it.
        rule: The rule that a use of it breaks, or `None`.
        becomes: What takes its place on the NPU, or `None`.
        since: The first release of torch_npu that has `becomes`, or `None` for all.
        shimmed: `transfer_to_npu` makes it work.
        note: What else is true of it.
        statuses: By release, the oldest first; empty where there is no table.
        replaces: What it takes the place of, if it is a name of the NPU.
        sources: Where all this was read.
    """

    name: str
    rule: Rule | None = None
    becomes: str | None = None
    since: TorchVersion | None = None
    shimmed: bool = False
    note: LocalizedText | None = None
    statuses: tuple[ReleaseStatus, ...] = ()
    replaces: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def name_facts(name: str, catalogue: Catalogue) -> NameFacts | None:
    """What is known of a qualified name, if anything; the tables are read when first needed."""
    symbol = catalogue.symbols.get(name) or catalogue.libraries.get(name)
    # What the tables say of `torch.cuda` holds for its counterpart, under another name.
    is_of_cuda = symbol is not None and symbol.becomes is not None
    statuses = () if is_of_cuda else _statuses(name, catalogue.native)
    native = catalogue.native.entry(name)
    replaces = tuple(_replaced_by(name, catalogue))
    if symbol is None and not statuses and not replaces:
        return None
    sources = tuple(entry.source for entry in (symbol, native) if entry is not None)
    facts = NameFacts(name, statuses=statuses, replaces=replaces, sources=sources)
    if symbol is None:
        return facts
    rule, becomes, since = symbol.rule, symbol.becomes, symbol.since
    shimmed, note = symbol.shimmed, symbol.note
    return replace(facts, rule=rule, becomes=becomes, since=since, shimmed=shimmed, note=note)


def variable_facts(name: str, catalogue: Catalogue) -> NameFacts | None:
    """What is known of an environment variable, `None` if that is nothing."""
    entry = catalogue.variable(name)
    if entry is not None:
        return NameFacts(name, entry.rule, entry.becomes, note=entry.note, sources=(entry.source,))
    before = [e for e in catalogue.environment.values() if e.becomes == name]
    if not before:
        return None
    return NameFacts(
        name,
        replaces=tuple(e.variable for e in before),
        sources=tuple(dict.fromkeys(e.source for e in before)),
    )


def npu_names(catalogue: Catalogue) -> Iterator[str]:
    """The names of the NPU that the tables know: under `torch.npu` and `torch_npu`."""
    found = {e.becomes.removesuffix("()") for e in catalogue.symbols.values() if e.becomes}
    found |= {entry.becomes for entries in catalogue.calls.values() for entry in entries}
    found |= {e.becomes for e in catalogue.libraries.values() if e.becomes}
    yield from sorted(n for n in found if n.startswith(("torch.npu.", "torch_npu.")))


def _replaced_by(name: str, catalogue: Catalogue) -> Iterator[str]:
    """What a name of the NPU takes the place of."""
    if not name.startswith(("torch.npu", "torch_npu")):
        return
    entries = (*catalogue.symbols.values(), *catalogue.libraries.values())
    yield from (e.symbol for e in entries if (e.becomes or "").removesuffix("()") == name)
    for callable_, calls in catalogue.calls.items():
        if any(entry.becomes == name for entry in calls):
            yield callable_


def _statuses(name: str, native: NativeTable) -> tuple[ReleaseStatus, ...]:
    verified = _verified()
    entry = native.entry(name)
    listed: Versions = verified.get(name, ())
    if entry is None and not listed:
        return ()
    found: list[ReleaseStatus] = []
    for minor in range(native.oldest.minor, native.newest.minor + 1):
        version = TorchVersion(native.oldest.major, minor)
        limits = tuple(
            limit for limit in (entry.limits if entry else ()) if includes(limit.versions, version)
        )
        is_listed = includes(listed, version) or bool(limits)
        last = found[-1] if found else None
        if last is not None and (last.listed, last.limits) == (is_listed, limits):
            found[-1] = ReleaseStatus(last.first, version, is_listed, limits)
        else:
            found.append(ReleaseStatus(version, version, is_listed, limits))
    return tuple(found)


@lru_cache(maxsize=1)
def _verified() -> Mapping[str, Versions]:
    return read_verified(rules_folder() / "native")
