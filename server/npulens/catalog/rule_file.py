"""One rule file: reading it, and the entries of its lists."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from npulens.catalog.fields import (
    FormatError,
    read_kebab_case,
    read_pattern,
    refused,
    shown,
    unknown_field,
)
from npulens.catalog.messages import LocalizedError, about, cannot_be_read, message, not_toml
from npulens.catalog.model import Applicability, Rule
from npulens.catalog.name_expressions import is_quick
from npulens.catalog.native_sections import NATIVE_SECTIONS
from npulens.catalog.rule_toml import as_lists
from npulens.catalog.sections import LAUNCH, RULES, SECTIONS, Section
from npulens.text.regular_files import read_regular
from npulens.text.toml import parse_toml

MEGABYTES = 16
"""How large a rule file may be."""


class CatalogueError(LocalizedError):
    """A rule file cannot be used; the one sentence names the file, the entry and the reason."""


OWN_FAMILY = "own"
"""The family of a user's rule that does not say it."""


def read_content(path: Path, label: str, family: str = "") -> object:
    """The lists that a rule file holds, in JSON or in TOML.

    Errors call the file by the label. A rule in TOML that does not say its family is of this one,
    or else of that of the folder.

    Raises:
        CatalogueError: It cannot be read.
    """
    if path.suffix != ".toml":
        return read_json(path, label)
    text = _read_text(path, label)
    try:
        return as_lists(parse_toml(text), path.stem, family or path.parent.name)
    except FormatError as error:
        raise CatalogueError(about(label, error.text)) from None
    except ValueError as error:
        raise CatalogueError(about(label, not_toml(error))) from error


def read_json(path: Path, label: str) -> object:
    """What a JSON file holds.

    Raises:
        CatalogueError: It cannot be read.
    """
    text = _read_text(path, label)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = message("error.not-json", line=error.lineno, reason=error.msg)
        raise CatalogueError(about(label, problem)) from error
    except (RecursionError, ValueError) as error:
        raise CatalogueError(about(label, message("error.unusable-json", reason=error))) from error


def _read_text(path: Path, label: str) -> str:
    try:
        return read_regular(path, MEGABYTES).decode("utf-8-sig")
    except OSError as error:
        raise CatalogueError(about(label, cannot_be_read(error))) from error
    except UnicodeDecodeError as error:
        raise CatalogueError(about(label, message("error.not-utf-8"))) from error


@dataclass(frozen=True)
class RuleFile:
    """One rule file.

    Attributes:
        label: How errors call it.
        is_own: Whether it is one of a user or a project, and not shipped.
    """

    label: str
    family: str
    lists: Mapping[str, list[object]]
    is_own: bool = False

    @classmethod
    def read(cls, path: Path, label: str, *, is_own: bool = False) -> "RuleFile":
        """Read a file.

        Raises:
            CatalogueError: It cannot be read or breaks the format.
        """
        content = read_content(path, label, OWN_FAMILY if is_own else "")
        return replace(cls.of(content, label), is_own=is_own)

    @classmethod
    def of(cls, content: object, label: str) -> "RuleFile":
        """A file with this content.

        Raises:
            CatalogueError: It breaks the format.
        """
        try:
            return cls._checked(content, label)
        except FormatError as error:
            raise CatalogueError(about(label, error.text)) from None

    @classmethod
    def _checked(cls, content: object, label: str) -> "RuleFile":
        if not isinstance(content, dict):
            raise FormatError(message("format.json-object"))
        if "family" not in content:
            raise FormatError(message("format.missing-field", name="family"))
        sections = (*SECTIONS, *NATIVE_SECTIONS)
        lists = {section.name: content.get(section.name, []) for section in sections}
        for name in content.keys() - lists.keys() - {"family"}:
            raise unknown_field(name)
        for name, value in lists.items():
            if not isinstance(value, list):
                raise refused(value, "format.list").in_field(name)
        try:
            return cls(label, read_kebab_case(content["family"]), lists)
        except FormatError as error:
            raise error.in_field("family") from None

    def add_rules(self, rules: dict[str, Rule]) -> None:
        """Add this file's rules to those by name of the files before it.

        Raises:
            CatalogueError: A rule is wrong, or its code or name is taken.
        """
        codes = {rule.code: rule.name for rule in rules.values()}
        for fields in self.checked(RULES):
            rule = Rule(
                family=self.family, **{name.replace("-", "_"): v for name, v in fields.items()}
            )
            if rule.code in codes:
                taken = message("format.code-taken", code=rule.code, name=codes[rule.code])
                raise CatalogueError(about(f"{self.label}: rules {rule.name}", taken))
            if rule.name in rules:
                taken = message("format.name-taken", name=rule.name, code=rules[rule.name].code)
                raise CatalogueError(about(f"{self.label}: rules {rule.code}", taken))
            rules[rule.name] = rule
            codes[rule.code] = rule.name

    def entries(self, section: Section, rules: Mapping[str, Rule]) -> Iterator[dict[str, Any]]:
        """The fields of each entry of a table, the rule's name replaced by the rule.

        Raises:
            CatalogueError: An entry is wrong or occurs twice.
        """
        seen: set[tuple[object, ...]] = set()

        def resolve(fields: dict[str, Any]) -> None:
            key = tuple(fields[field] for field in section.key)
            if key in seen:
                raise FormatError(message("format.twice"))
            seen.add(key)
            rule = rules.get(fields["rule"])
            if rule is None:
                raise FormatError(message("format.unknown-rule", name=shown(fields["rule"])))
            fields["rule"] = rule
            if self.is_own and section is LAUNCH:
                _require_quick(fields)
            if "becomes" not in fields or fields["becomes"] is not None:
                return
            if fields["fix"] is not Applicability.MANUAL:
                raise FormatError(message("format.fix-without-becomes", fix=fields["fix"].value))
            if any("{replacement}" in text for text in rule.message):
                raise FormatError(message("format.needs-becomes", rule=rule.name))

        return self.checked(section, resolve)

    def checked(
        self, section: Section, finish: Callable[[dict[str, Any]], None] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The fields of each entry of a list, `finish` having seen and perhaps refused them.

        Raises:
            CatalogueError: An entry is wrong or was refused.
        """
        for index, entry in enumerate(self.lists[section.name]):
            try:
                fields = section.read(entry)
                if finish is not None:
                    finish(fields)
            except FormatError as error:
                place = section.place(index, entry)
                raise CatalogueError(about(f"{self.label}: {place}", error.text)) from None
            yield fields


def _read_pattern(name: str, value: str) -> str:
    try:
        return read_pattern(value)
    except FormatError as error:
        raise error.in_field(name) from None


def _require_quick(fields: Mapping[str, Any]) -> None:
    for name in ("name", "value", "beside", "without"):
        if fields[name] is not None and not is_quick(_read_pattern(name, fields[name])):
            problem = message("format.not-quick", pattern=shown(fields[name]))
            raise FormatError(problem).in_field(name)
