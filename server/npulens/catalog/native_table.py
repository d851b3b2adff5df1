"""Makes the table of native APIs of what the rule files say."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from npulens.catalog.fields import FormatError, list_of, read_qualified_name, shown
from npulens.catalog.messages import about, message
from npulens.catalog.model import Rule
from npulens.catalog.native_sections import (
    KINDS,
    NATIVE,
    SPELLINGS,
    TENSORS,
    limit_kind,
    native_limit,
    parse_versions,
)
from npulens.catalog.native_tables import LimitKind, NativeEntry, NativeLimit, NativeTable, Versions
from npulens.catalog.rule_file import CatalogueError, RuleFile, read_json
from npulens.catalog.sections import Section


def native_table(files: Sequence[RuleFile], rules: Mapping[str, Rule]) -> NativeTable:
    """What all files say; of two entries for one API that of the later file counts.

    Raises:
        CatalogueError: A file breaks the format.
    """
    kinds: dict[str, LimitKind] = {}
    for file in files:

        def finish_kind(fields: dict[str, Any]) -> None:
            kinds[fields["kind"]] = limit_kind(fields, rules)

        for _ in _once(file, KINDS, finish_kind):
            pass

    entries: dict[str, NativeEntry] = {}
    spellings: dict[str, str] = {}
    tensors: set[str] = set()

    known: dict[str, NativeLimit] = {}

    def limit(value: object) -> NativeLimit:
        written = repr(value)  # of a thousand limits a hundred differ
        if written not in known:
            known[written] = native_limit(value, kinds)
        return known[written]

    def finish_entry(fields: dict[str, Any]) -> None:
        fields["limits"] = tuple(limit(value) for value in fields["limits"])

    def finish_spelling(fields: dict[str, Any]) -> None:
        if fields["api"] not in entries:
            raise FormatError(message("format.unknown-api", name=shown(fields["api"])))

    for file in files:
        for fields in _once(file, NATIVE, finish_entry):
            entries[fields["api"]] = NativeEntry(**fields)
        for fields in _once(file, SPELLINGS, finish_spelling):
            spellings[fields["name"]] = fields["api"]
        for fields in _once(file, TENSORS):
            tensors.update(f"{fields['owner']}.{name}" for name in fields["names"])
    return NativeTable(entries, spellings, frozenset(tensors))


def _once(file: RuleFile, section: Section, finish: Any = None) -> Iterator[dict[str, Any]]:
    """The entries of a list, in which each may occur only once."""
    seen: set[object] = set()

    def check(fields: dict[str, Any]) -> None:
        key = fields[section.key[0]]
        if key in seen:
            raise FormatError(message("format.twice"))
        seen.add(key)
        if finish is not None:
            finish(fields)

    return file.checked(section, check)


def read_verified(folder: Path) -> dict[str, Versions]:
    """The names in `verified.json`, which holds lists of names by releases.

    Raises:
        CatalogueError: It cannot be read or breaks the format.
    """
    label = "rules/native/verified.json"
    content = read_json(folder / "verified.json", label)
    names: dict[str, Versions] = {}
    read_names = list_of(read_qualified_name, "format.qualified-names")
    try:
        if not isinstance(content, dict):
            raise FormatError(message("format.json-object"))
        for versions, found in content.items():
            names |= dict.fromkeys(read_names(found), parse_versions(versions))
    except FormatError as error:
        raise CatalogueError(about(label, error.text)) from None
    return names
