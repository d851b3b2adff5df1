"""Reads rule files, checks them, and makes them a catalogue. See `docs/rule-format.md`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from npulens.catalog.messages import about, message
from npulens.catalog.model import Applicability, Rule
from npulens.catalog.native_table import native_table, read_verified
from npulens.catalog.npu_releases import npu_releases
from npulens.catalog.npu_tables import MembersEntry, NpuTable, SignatureEntry
from npulens.catalog.npu_variables import npu_variables
from npulens.catalog.pattern_files import read_pattern_files
from npulens.catalog.rule_file import CatalogueError, RuleFile
from npulens.catalog.rule_properties import SettledBy
from npulens.catalog.sections import (
    CALLS,
    ENVIRONMENT,
    LAUNCH,
    LIBRARIES,
    MEMBERS,
    METHODS,
    NPU_RELEASES,
    NPU_VARIABLES,
    OPERATORS,
    PACKAGES,
    PARAMETERS,
    PLAIN,
    SIGNATURES,
    SUITE,
    SUITE_NAMES,
    SYMBOLS,
)
from npulens.catalog.shipped_rules import rules_folder, shipped_rules
from npulens.catalog.suite_tables import SuiteEntry, SuiteNames, SuiteTable
from npulens.catalog.tables import (
    CallEntry,
    Catalogue,
    EnvironmentEntry,
    LaunchEntry,
    MethodEntry,
    OperatorEntry,
    ParameterEntry,
    Place,
    SymbolEntry,
)
from npulens.catalog.verdict_tables import read_conditions

__all__ = ["CatalogueError", "load_catalogue", "rules_folder", "with_verified_names"]


_NOT_A_FOLDER = "(?!/).*"
"""Any requirement; a name with a path behind it is a folder."""


def load_catalogue(extra_files: Sequence[Path] = ()) -> Catalogue:
    """Everything known: the shipped rules and, over them, those of the user's files.

    The shipped rules alone are read once in the life of a process.

    Raises:
        CatalogueError: If a file cannot be read or breaks the format.
    """
    return _read(rules_folder(), extra_files) if extra_files else _shipped(rules_folder())


@lru_cache(maxsize=1)
def _shipped(folder: Path) -> Catalogue:
    return _read(folder, ())


def _read(folder: Path, extra_files: Sequence[Path]) -> Catalogue:
    files = shipped_rules(folder)
    own = [path for path in extra_files if path.suffix != ".py"]
    files += [RuleFile.read(path, str(path), is_own=True) for path in own]
    patterns = [*sorted((folder / "fused").glob("*.py"))]
    patterns += [path for path in extra_files if path.suffix == ".py"]

    rules: dict[str, Rule] = {}
    for file in files:
        file.add_rules(rules)
    symbols: dict[str, SymbolEntry] = {}
    methods: dict[str, MethodEntry] = {}
    parameters: dict[str, dict[str, ParameterEntry]] = {}
    environment: dict[str, EnvironmentEntry] = {}
    libraries: dict[str, SymbolEntry] = {}
    calls: dict[str, dict[str, CallEntry]] = {}
    launch: dict[tuple[object, ...], LaunchEntry] = {}
    operators: dict[str, OperatorEntry] = {}
    suite: dict[str, list[SuiteEntry]] = {}
    suite_names: list[SuiteNames] = []
    packages = _packages(files, rules, libraries)
    for file in files:
        for fields in file.entries(LIBRARIES, rules):
            libraries[fields["symbol"]] = SymbolEntry(**fields)
        for fields in file.entries(SYMBOLS, rules):
            symbols[fields["symbol"]] = SymbolEntry(**fields)
        for fields in file.entries(METHODS, rules):
            methods[fields["name"]] = MethodEntry(**fields)
        for fields in file.entries(PARAMETERS, rules):
            of_callable = parameters.setdefault(fields["callable"], {})
            of_callable[fields["parameter"]] = ParameterEntry(**fields)
        for fields in file.entries(CALLS, rules):
            calls.setdefault(fields["callable"], {})[fields["becomes"]] = CallEntry(**fields)
        for fields in file.entries(ENVIRONMENT, rules):
            environment[fields["variable"]] = EnvironmentEntry(**fields)
        for fields in file.entries(LAUNCH, rules):
            key = tuple(fields[name] for name in LAUNCH.key)
            named = {name.replace("-", "_"): value for name, value in fields.items()}
            launch[key] = LaunchEntry(**named)
        for fields in file.entries(OPERATORS, rules):
            operators[fields["operator"]] = OperatorEntry(**fields)
        for fields in file.entries(SUITE, rules):
            suite.setdefault(fields["option"], []).append(SuiteEntry(**fields))
        suite_names += [SuiteNames(**fields) for fields in file.checked(SUITE_NAMES)]
    return Catalogue(
        rules={rule.code: rule for rule in sorted(rules.values(), key=lambda rule: rule.code)},
        symbols=symbols,
        methods=methods,
        parameters={name: tuple(entries.values()) for name, entries in parameters.items()},
        environment=environment,
        native=native_table(files, rules),
        libraries=libraries,
        patterns=read_pattern_files(patterns),
        calls={name: tuple(entries.values()) for name, entries in calls.items()},
        plain=frozenset(f["symbol"] for file in files for f in file.checked(PLAIN)),
        packages=frozenset(name for each in packages for name in each.name.split("|")),
        launch={
            place: tuple(each for each in (*launch.values(), *packages) if place in _places(each))
            for place in Place
        },
        operators=operators,
        npu=_npu_table(files, rules),
        conditions=read_conditions(folder, _missing(symbols.values())),
        suite=SuiteTable({name: tuple(of) for name, of in suite.items()}, suite_names),
    )


def _missing(symbols: Iterable[SymbolEntry]) -> frozenset[str]:
    """The names that no release has, so that `hasattr` is false of them."""
    return frozenset(e.symbol for e in symbols if SettledBy.OTHER_WAY in e.rule.settled_by)


def _packages(
    files: Sequence[RuleFile], rules: dict[str, Rule], libraries: dict[str, SymbolEntry]
) -> list[LaunchEntry]:
    """The entries for requests of packages; those for imports are added to the libraries.

    One entry says both, so that an import and a line of requirements cannot differ.
    """
    packages = []
    for file in files:
        for fields in file.entries(PACKAGES, rules):
            libraries |= {entry.symbol: entry for entry in _imports(fields)}
            if fields["names"]:
                packages.append(_request(fields, rules, file.label))
    return packages


def _imports(fields: Mapping[str, Any]) -> Iterator[SymbolEntry]:
    """The entries for what is imported of a package."""
    for module in fields["modules"]:
        yield SymbolEntry(
            symbol=module,
            rule=fields["rule"],
            becomes=None,
            fix=Applicability.MANUAL,
            since=None,
            shimmed=False,
            severity=fields["severity"],
            note=fields["note"],
            source=fields["source"],
        )


def _request(fields: Mapping[str, Any], rules: Mapping[str, Rule], label: str) -> LaunchEntry:
    """The entry for requirements of a package, under the rule that its rule names for them.

    Raises:
        CatalogueError: There is no rule of that name.
    """
    rule: Rule = fields["rule"]
    of_requests = rule if rule.requested is None else rules.get(rule.requested)
    if of_requests is None:
        problem = message("format.unknown-rule", name=rule.requested)
        raise CatalogueError(about(f"{label}: rules {rule.name}", problem))
    return LaunchEntry(
        place=Place.PACKAGE,
        name="|".join(fields["names"]),
        value=_NOT_A_FOLDER,
        rule=of_requests,
        becomes=None,
        fix=Applicability.MANUAL,
        severity=fields["severity"],
        note=fields["note"],
        evidence=(),
        unless=(),
        beside=None,
        without=None,
        releases=(),
        any_device=None,
        chooses=None,
        source=fields["source"],
    )


def _npu_table(files: Sequence[RuleFile], rules: dict[str, Rule]) -> NpuTable:
    members: dict[str, MembersEntry] = {}
    signatures: dict[str, SignatureEntry] = {}
    for file in files:
        for fields in file.entries(MEMBERS, rules):
            names = frozenset(fields.pop("names"))
            members[fields["owner"]] = MembersEntry(names=names, **fields)
        for fields in file.entries(SIGNATURES, rules):
            signatures[fields["callable"]] = SignatureEntry(**fields)
    groups = [fields for file in files for fields in file.checked(NPU_RELEASES)]
    lists = [fields for file in files for fields in file.checked(NPU_VARIABLES)]
    return NpuTable(members, signatures, npu_variables(lists), npu_releases(groups))


def _places(entry: LaunchEntry) -> tuple[Place, ...]:
    """Where an entry is looked up."""
    if entry.place is Place.SETTING:
        return (Place.SETTING, Place.KEY, Place.OPTION)
    return (entry.place,)


def with_verified_names(catalogue: Catalogue) -> Catalogue:
    """The catalogue with the names of all APIs that the support tables list.

    Raises:
        CatalogueError: Their file cannot be read or breaks the format.
    """
    native = replace(catalogue.native, verified=read_verified(rules_folder() / "native"))
    return replace(catalogue, native=native)
