"""The lists of a rule file that say what PyTorch's own APIs do on the NPU."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from npulens.catalog.fields import (
    FormatError,
    list_of,
    read_flag,
    read_kebab_case,
    read_name,
    read_position,
    read_qualified_name,
    read_severity,
    read_string,
    read_template,
    refused,
    shown,
)
from npulens.catalog.messages import message
from npulens.catalog.model import Rule, TorchVersion
from npulens.catalog.native_tables import LimitKind, NativeLimit, Versions
from npulens.catalog.sections import Section

_RANGES = re.compile(
    r"\d{1,3}\.\d{1,3}(-\d{1,3}\.\d{1,3})?(, \d{1,3}\.\d{1,3}(-\d{1,3}\.\d{1,3})?)*"
)


@lru_cache(maxsize=256)
def parse_versions(text: str) -> Versions:
    """`2.6, 2.8-2.10` as ranges.

    Raises:
        FormatError: It is something else.
    """
    if not _RANGES.fullmatch(text):
        raise refused(text, "format.releases")
    ranges = []
    for part in text.split(", "):
        ends = [TorchVersion(*map(int, end.split("."))) for end in part.split("-")]
        if ends[0] > ends[-1]:
            raise FormatError(message("format.counts-down", value=shown(part)))
        ranges.append((ends[0], ends[-1]))
    return tuple(ranges)


def _versions(value: object) -> Versions:
    if not isinstance(value, str):
        raise refused(value, "format.releases")
    return parse_versions(value)


def _constants(value: object) -> tuple[object, ...]:
    if isinstance(value, list) and all(isinstance(v, (str, int, float, bool)) for v in value):
        return tuple(value)
    raise refused(value, "format.constants")


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise refused(value, "format.number")


_LIMIT = Section(
    "limits",
    ("kind",),
    {
        "kind": read_string,
        "in": _versions,
        "argument": read_name,
        "position": read_position,
        "only": _constants,
        "unlike": _constants,
        "below": _number,
        "above": _number,
        "absent": read_flag,
        "given": read_flag,
        "dtypes": list_of(read_name, "format.names-of-types"),
        "instead": read_string,
    },
    {
        "argument": None,
        "position": None,
        "only": (),
        "unlike": (),
        "below": None,
        "above": None,
        "absent": False,
        "given": False,
        "dtypes": (),
        "instead": "",
    },
)


def _limits(value: object) -> list[Any]:
    """Read later, since many are alike."""
    if not isinstance(value, list) or not value:
        raise refused(value, "format.limits")
    return value


KINDS = Section(
    "kinds",
    ("kind",),
    {
        "kind": read_kebab_case,
        "rule": read_string,
        "severity": read_severity,
        "text": read_template,
        "on_device": read_flag,
        "settled": read_kebab_case,
    },
    {"severity": None, "text": None, "on_device": False, "settled": ""},
)
NATIVE = Section(
    "native",
    ("api",),
    {"api": read_qualified_name, "limits": _limits, "source": read_string},
    {},
)
SPELLINGS = Section(
    "spellings", ("name",), {"name": read_qualified_name, "api": read_qualified_name}, {}
)
TENSORS = Section(
    "tensors",
    ("owner",),
    {"owner": read_qualified_name, "names": list_of(read_name, "format.names")},
    {},
)
NATIVE_SECTIONS = (KINDS, NATIVE, SPELLINGS, TENSORS)

_CONDITIONS = ("only", "unlike", "below", "above", "absent", "given")


def limit_kind(fields: Mapping[str, Any], rules: Mapping[str, Rule]) -> LimitKind:
    """A kind of limit, from the fields of its entry.

    Raises:
        FormatError: Its rule is unknown.
    """
    if fields["rule"] not in rules:
        raise FormatError(message("format.unknown-rule", name=shown(fields["rule"])))
    return LimitKind(**{**fields, "rule": rules[fields["rule"]]})


def native_limit(value: object, kinds: Mapping[str, LimitKind]) -> NativeLimit:
    """A limit, from what is in the file.

    Raises:
        FormatError: It breaks the format, its kind is unknown, its text wants what is not there,
            or it has a condition without a parameter or a parameter without a condition.
    """
    try:
        fields = _LIMIT.read(value)
    except FormatError as error:
        raise error.in_field("limits") from None
    kind = kinds.get(fields["kind"])
    if kind is None:
        raise FormatError(message("format.unknown-kind", name=shown(fields["kind"])))
    conditions = [n for n in _CONDITIONS if fields[n] not in ((), None) and fields[n] is not False]
    if (fields["argument"] is None) != (not conditions):
        raise FormatError(message("format.half-a-limit"))
    text = kind.text.en + kind.text.zh if kind.text is not None else ""
    if "{instead}" in text and not fields["instead"]:
        raise FormatError(message("format.needs-instead", kind=kind.kind))
    if "{argument}" in text and fields["argument"] is None:
        raise FormatError(message("format.needs-argument", kind=kind.kind))
    values = {name: value for name, value in fields.items() if name not in ("kind", "in")}
    return NativeLimit(kind=kind, versions=fields["in"], **values)
