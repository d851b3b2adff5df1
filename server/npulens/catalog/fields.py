"""Readers of fields: each takes a JSON value and returns it checked, or refuses it."""

import json
import re
from collections.abc import Callable
from enum import Enum
from string import Formatter
from typing import Any

from npulens.catalog.model import (
    LANGUAGES,
    Applicability,
    Example,
    LocalizedText,
    Severity,
    TorchVersion,
)


class FormatError(Exception):
    """Why a value is refused; whoever knows the place adds it."""


# Readers: each takes a JSON value and returns what the catalogue holds, or refuses it.

Reader = Callable[[Any], Any]

NAME = r"[^\W\d]\w*"
QUALIFIED_NAME = rf"{NAME}(?:\.{NAME})*"


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def matching(pattern: str, description: str) -> Reader:
    matches = re.compile(pattern).fullmatch

    def read(value: object) -> str:
        if not isinstance(value, str) or not matches(value):
            raise FormatError(f"must be {description}, not {shown(value)}")
        return value

    return read


def one_of(
    choices: type[Enum],
) -> Reader:
    members: dict[str, Any] = {member.value: member for member in choices}

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in members:
            raise FormatError(f"must be one of {', '.join(members)}, not {shown(value)}")
        return members[value]

    return read


def read_string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise FormatError(f"must be a text, not {shown(value)}")
    return value


def read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise FormatError(f"must be true or false, not {shown(value)}")
    return value


def read_position(value: object) -> int:
    if type(value) is not int or value < 0:
        raise FormatError(f"must be a whole number from 0, not {shown(value)}")
    return value


def list_of(read: Reader, description: str) -> Reader:
    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise FormatError(f"must be a list of {description}, not {shown(value)}")
        return tuple(map(read, value))

    return read_all


def read_localized(value: object) -> LocalizedText:
    if not isinstance(value, dict):
        raise FormatError(f'must be {{"en": "...", "zh": "..."}}, not {shown(value)}')
    for language in LANGUAGES:
        text = value.get(language)
        if not isinstance(text, str) or not text:
            raise FormatError(f'must have a text in the language "{language}"')
    if len(value) > len(LANGUAGES):
        raise FormatError(f"must have no texts but {' and '.join(LANGUAGES)}")
    return LocalizedText(**value)


def read_template(value: object) -> LocalizedText:
    texts = read_localized(value)
    for text in texts:
        try:
            names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError:
            raise FormatError("must not have a brace without its partner") from None
        if not all(map(str.isidentifier, names)):
            raise FormatError("must have only names between braces, such as {symbol}")
    return texts


def read_code(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise FormatError(f"must be a list of lines of code, not {shown(value)}")
    return "\n".join(value) + "\n"


def read_example(value: object) -> Example:
    if not isinstance(value, dict) or value.keys() != {"before", "after"}:
        raise FormatError('must hold objects with "before" and "after"')
    after = value["after"]
    return Example(read_code(value["before"]), None if after is None else read_code(after))


def read_constants(value: object) -> dict[str, Any]:
    """Parameters with a value for each, which stands for a Python constant."""
    if not isinstance(value, dict):
        raise FormatError(f"must be parameters with their values, not {shown(value)}")
    for name, constant in value.items():
        if not name.isidentifier() or not isinstance(constant, (bool, int, float, str)):
            raise FormatError(f"must give {shown(name)} a plain value, not {shown(constant)}")
    return value


def read_version(value: object) -> TorchVersion:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}", value):
        raise FormatError(f'must be a version such as "2.7", not {shown(value)}')
    major, minor = value.split(".")
    return TorchVersion(int(major), int(minor))


read_kebab_case = matching(r"[a-z0-9]+(-[a-z0-9]+)*", "a name in kebab-case")
read_name = matching(NAME, "a name")
read_qualified_name = matching(QUALIFIED_NAME, "a qualified name")
read_severity = one_of(Severity)
read_applicability = one_of(Applicability)


def read_pattern(value: object) -> str:
    text = read_string(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise FormatError(f"must be a regular expression, not {shown(value)}") from None
    return text
