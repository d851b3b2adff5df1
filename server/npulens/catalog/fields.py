"""Readers of fields: each takes a JSON value and returns it checked, or refuses it."""

import json
import re
from collections.abc import Callable
from enum import Enum
from string import Formatter
from typing import Any

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import LocalizedError, joined, message
from npulens.catalog.model import (
    LANGUAGES,
    Applicability,
    Example,
    LocalizedText,
    Severity,
    TorchVersion,
)


class FormatError(LocalizedError):
    """Why a value is refused; whoever knows the place adds it."""

    def in_field(self, name: str) -> "FormatError":
        """The same, of a field."""
        return FormatError(message("format.in-field", name=name, problem=self.text))


ARGUMENT_TYPES = frozenset({"bool", "int", "float", "str"})
"""The types that a signature may say of an argument."""


def unknown_field(name: str) -> FormatError:
    """That there is no such field."""
    return FormatError(message("format.unknown-field", name=name))


# Readers: each returns what the catalogue makes of a JSON value, or raises FormatError.

Reader = Callable[[Any], Any]

NAME = r"[^\W\d]\w*"
QUALIFIED_NAME = rf"{NAME}(?:\.{NAME})*"


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def refused(value: object, name: MessageId, /, **values: object) -> FormatError:
    """That a value is not what it should be."""
    what = message(name, **values)
    return FormatError(message("format.wrong", what=what, value=shown(value)))


def matching(pattern: str, name: MessageId) -> Reader:
    matches = re.compile(pattern).fullmatch

    def read(value: object) -> str:
        if not isinstance(value, str) or not matches(value):
            raise refused(value, name)
        return value

    return read


def one_of(choices: type[Enum]) -> Reader:
    members: dict[str, Any] = {member.value: member for member in choices}

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in members:
            raise refused(value, "format.one-of", members=", ".join(members))
        return members[value]

    return read


def read_string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refused(value, "format.text")
    return value


def read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refused(value, "format.switch")
    return value


def read_position(value: object) -> int:
    if type(value) is not int or value < 0:
        raise refused(value, "format.position")
    return value


def list_of(read: Reader, name: MessageId) -> Reader:
    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise refused(value, "format.list-of", what=message(name))
        return tuple(map(read, value))

    return read_all


def read_localized(value: object) -> LocalizedText:
    if not isinstance(value, dict):
        raise refused(value, "format.localized")
    for language in LANGUAGES:
        text = value.get(language)
        if not isinstance(text, str) or not text:
            raise FormatError(message("format.no-language", language=language))
    if len(value) > len(LANGUAGES):
        listed = joined([LocalizedText(each, each) for each in LANGUAGES], "punctuation.and")
        raise FormatError(message("format.other-languages", languages=listed))
    return LocalizedText(**value)


def read_template(value: object) -> LocalizedText:
    texts = read_localized(value)
    for text in texts:
        try:
            names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError:
            raise FormatError(message("format.lone-brace")) from None
        if not all(map(str.isidentifier, names)):
            raise FormatError(message("format.names-in-braces"))
    return texts


def read_code(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise refused(value, "format.lines")
    return "\n".join(value) + "\n"


def read_example(value: object) -> Example:
    if not isinstance(value, dict) or value.keys() != {"before", "after"}:
        raise FormatError(message("format.before-and-after"))
    after = value["after"]
    return Example(read_code(value["before"]), None if after is None else read_code(after))


def read_constants(value: object) -> dict[str, Any]:
    """Parameters with a value for each, a Python constant."""
    if not isinstance(value, dict):
        raise refused(value, "format.parameters")
    for name, constant in value.items():
        if not name.isidentifier() or not isinstance(constant, (bool, int, float, str)):
            values = {"name": shown(name), "value": shown(constant)}
            raise FormatError(message("format.plain-value", **values))
    return value


def read_names(value: object) -> dict[str, str]:
    """Names with another name for each."""
    if not isinstance(value, dict):
        raise refused(value, "format.parameters")
    return {read_name(name): read_name(other) for name, other in value.items()}


def read_types(value: object) -> dict[str, str]:
    """Parameters with the name of the type of each."""
    if not isinstance(value, dict) or not ARGUMENT_TYPES.issuperset(map(str, value.values())):
        raise refused(value, "format.types")
    return value


def read_choices(value: object) -> dict[str, tuple[Any, ...]]:
    """Parameters with the values that each takes, Python constants."""
    if not isinstance(value, dict) or not all(isinstance(v, list) for v in value.values()):
        raise refused(value, "format.choices")
    for name, constants in value.items():
        for constant in constants:
            read_constants({name: constant})
    return {name: tuple(constants) for name, constants in value.items()}


def read_version(value: object) -> TorchVersion:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}", value):
        raise refused(value, "format.version")
    major, minor = value.split(".")
    return TorchVersion(int(major), int(minor))


read_kebab_case = matching(r"[a-z0-9]+(-[a-z0-9]+)*", "format.kebab-case")
read_name = matching(NAME, "format.name")
read_qualified_name = matching(QUALIFIED_NAME, "format.qualified-name")
read_severity = one_of(Severity)
read_applicability = one_of(Applicability)


def read_pattern(value: object) -> str:
    text = read_string(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise refused(value, "format.pattern") from None
    return text
