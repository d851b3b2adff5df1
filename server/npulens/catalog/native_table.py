"""Makes the table of native APIs of what the rule files say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npulens.catalog.fields import FormatError, shown
from npulens.catalog.model import Rule
from npulens.catalog.native import LimitKind, NativeEntry, NativeTable
from npulens.catalog.native_sections import (
    KINDS,
    NATIVE,
    SPELLINGS,
    TENSORS,
    limit_kind,
    native_limit,
)
from npulens.catalog.rule_file import RuleFile
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

    def finish_entry(fields: dict[str, Any]) -> None:
        fields["limits"] = tuple(native_limit(limit, kinds) for limit in fields["limits"])

    def finish_spelling(fields: dict[str, Any]) -> None:
        if fields["api"] not in entries:
            raise FormatError(f"unknown api {shown(fields['api'])}")

    for file in files:
        for fields in _once(file, NATIVE, finish_entry):
            entries[fields["api"]] = NativeEntry(**fields)
        for fields in _once(file, SPELLINGS, finish_spelling):
            spellings[fields["name"]] = fields["api"]
        for fields in _once(file, TENSORS):
            tensors.update(f"{fields['owner']}.{name}" for name in fields["names"])
    return NativeTable(entries, spellings, frozenset(tensors))


def _once(file: RuleFile, section: Section, finish: Any = None) -> Iterator[dict[str, Any]]:
    """The entries of a list, in which each may stand only once."""
    seen: set[object] = set()

    def check(fields: dict[str, Any]) -> None:
        key = fields[section.key[0]]
        if key in seen:
            raise FormatError("is there twice")
        seen.add(key)
        if finish is not None:
            finish(fields)

    return file.checked(section, check)
