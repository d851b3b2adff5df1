"""One rule file: reading it, and the entries of its lists."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npulens.catalog.fields import (
    FormatError,
    read_kebab_case,
    shown,
)
from npulens.catalog.model import Applicability, Rule
from npulens.catalog.native_sections import NATIVE_SECTIONS
from npulens.catalog.sections import (
    RULES,
    SECTIONS,
    Section,
)


class CatalogueError(Exception):
    """A rule file cannot be used; the one sentence names the file, the entry and the reason."""


def read_json(path: Path, label: str) -> object:
    """What a JSON file holds.

    Raises:
        CatalogueError: It cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CatalogueError(f"{label}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{label}: not UTF-8 text") from error
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: not valid JSON: {error.msg}"
        raise CatalogueError(f"{label}: {reason}") from error
    except (RecursionError, ValueError) as error:
        raise CatalogueError(f"{label}: not usable JSON: {error}") from error


@dataclass(frozen=True)
class RuleFile:
    """One rule file.

    Attributes:
        label: How errors call it.
        family: Its family.
        lists: Its lists, by name.
    """

    label: str
    family: str
    lists: Mapping[str, list[object]]

    @classmethod
    def read(cls, path: Path, label: str) -> "RuleFile":
        content = read_json(path, label)
        try:
            return cls._checked(content, label)
        except FormatError as error:
            raise CatalogueError(f"{label}: {error}") from None

    @classmethod
    def _checked(cls, content: object, label: str) -> "RuleFile":
        if not isinstance(content, dict):
            raise FormatError("must be a JSON object")
        if "family" not in content:
            raise FormatError('field "family" is missing')
        sections = (*SECTIONS, *NATIVE_SECTIONS)
        lists = {section.name: content.get(section.name, []) for section in sections}
        for name in content.keys() - lists.keys() - {"family"}:
            raise FormatError(f'unknown field "{name}"')
        for name, value in lists.items():
            if not isinstance(value, list):
                raise FormatError(f'"{name}" must be a list, not {shown(value)}')
        try:
            return cls(label, read_kebab_case(content["family"]), lists)
        except FormatError as error:
            raise FormatError(f'"family" {error}') from None

    def add_rules(self, rules: dict[str, Rule]) -> None:
        """Add this file's rules to those by name of the files before it."""
        codes = {rule.code: rule.name for rule in rules.values()}
        for fields in self.checked(RULES):
            rule = Rule(family=self.family, **fields)
            if rule.code in codes:
                taken = f'code {rule.code} is already taken by "{codes[rule.code]}"'
                raise CatalogueError(f"{self.label}: rules {rule.name}: {taken}")
            if rule.name in rules:
                taken = f'name "{rule.name}" is already taken by {rules[rule.name].code}'
                raise CatalogueError(f"{self.label}: rules {rule.code}: {taken}")
            rules[rule.name] = rule
            codes[rule.code] = rule.name

    def entries(self, section: Section, rules: Mapping[str, Rule]) -> Iterator[dict[str, Any]]:
        """The fields of each entry of a table, the rule's name replaced by the rule."""
        seen: set[tuple[object, ...]] = set()

        def resolve(fields: dict[str, Any]) -> None:
            key = tuple(fields[field] for field in section.key)
            if key in seen:
                raise FormatError("is there twice")
            seen.add(key)
            rule = rules.get(fields["rule"])
            if rule is None:
                raise FormatError(f"unknown rule {shown(fields['rule'])}")
            fields["rule"] = rule
            if "becomes" not in fields or fields["becomes"] is not None:
                return
            if fields["fix"] is not Applicability.MANUAL:
                raise FormatError(f'"fix" is {fields["fix"].value} but there is no "becomes"')
            if any("{replacement}" in text for text in rule.message):
                raise FormatError(f'the message of "{rule.name}" needs a "becomes"')

        return self.checked(section, resolve)

    def checked(
        self, section: Section, finish: Callable[[dict[str, Any]], None] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The fields of each entry of a list, `finish` having seen and perhaps refused them."""
        for index, entry in enumerate(self.lists[section.name]):
            try:
                fields = section.read(entry)
                if finish is not None:
                    finish(fields)
            except FormatError as error:
                place = section.place(index, entry)
                raise CatalogueError(f"{self.label}: {place}: {error}") from None
            yield fields
