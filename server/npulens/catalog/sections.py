"""The lists of a rule file: which fields their entries have, and what reads each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from npulens.catalog.fields import (
    NAME,
    QUALIFIED_NAME,
    FormatError,
    Reader,
    list_of,
    matching,
    one_of,
    read_applicability,
    read_choices,
    read_code,
    read_constants,
    read_example,
    read_flag,
    read_kebab_case,
    read_localized,
    read_name,
    read_names,
    read_position,
    read_qualified_name,
    read_severity,
    read_string,
    read_template,
    read_types,
    read_version,
    refused,
    unknown_field,
)
from npulens.catalog.messages import message
from npulens.catalog.model import Applicability
from npulens.catalog.npu_releases import CANN_RELEASE
from npulens.catalog.rule_properties import Absent, LibraryState, Once, ReportTable, SettledBy, Tag
from npulens.catalog.suite_tables import SuiteOwner, Takes
from npulens.catalog.tables import Choice, Meaning, Place, When, WithoutDevice


@dataclass(frozen=True)
class Section:
    """One list of a rule file: the fields of its entries.

    Attributes:
        key: The fields that identify an entry.
        readers: Every field, and what reads it.
        defaults: The fields that may be left out.
    """

    name: str
    key: tuple[str, ...]
    readers: Mapping[str, Reader]
    defaults: Mapping[str, Any]

    def read(self, entry: object) -> dict[str, Any]:
        """All fields of an entry.

        Raises:
            FormatError: A field is unknown, missing or wrong.
        """
        if not isinstance(entry, dict):
            raise refused(entry, "format.object")
        fields = dict(self.defaults)
        readers = self.readers
        name = ""
        try:
            for name, value in entry.items():
                fields[name] = readers[name](value)
        except KeyError:
            raise unknown_field(name) from None
        except FormatError as error:
            raise error.in_field(name) from None
        if len(fields) < len(self.readers):
            missing = next(name for name in self.readers if name not in fields)
            raise FormatError(message("format.missing-field", name=missing))
        return fields

    def place(self, index: int, entry: object) -> str:
        """How an entry is called in an error, such as `symbols[12] torch.cuda.seed`."""
        if not isinstance(entry, dict):
            return f"{self.name}[{index}]"
        words = [str(entry[field]) for field in self.key if isinstance(entry.get(field), str)]
        return " ".join([f"{self.name}[{index}]", *words])


RULES = Section(
    "rules",
    ("code",),
    {
        "code": matching(r"[A-Z]{2,10}\d{3}", "format.code"),
        "name": read_kebab_case,
        "severity": read_severity,
        "enabled": read_flag,
        "message": read_template,
        "explanation": read_localized,
        "examples": list_of(read_example, "format.examples"),
        "valid": list_of(read_code, "format.pieces-of-code"),
        "file": read_string,
        "minutes": read_position,
        "fix-minutes": read_position,
        "once": one_of(Once),
        "settled-by": list_of(one_of(SettledBy), "format.settlements"),
        "library": one_of(LibraryState),
        "requested": read_kebab_case,
        "absent": one_of(Absent),
        "by-hand": read_flag,
        "unread": read_flag,
        "any-device": read_flag,
        "per-device": read_flag,
        "of-npu": read_flag,
        "verified-names": read_flag,
        "table": one_of(ReportTable),
        "tags": list_of(one_of(Tag), "format.tags"),
    },
    {
        "enabled": True,
        "examples": (),
        "valid": (),
        "file": "example.py",
        "minutes": 30,
        "fix-minutes": 5,
        "once": None,
        "settled-by": (),
        "library": None,
        "requested": None,
        "absent": None,
        "by-hand": False,
        "unread": False,
        "any-device": False,
        "per-device": False,
        "of-npu": False,
        "verified-names": False,
        "table": None,
        "tags": (),
    },
)
SYMBOLS = Section(
    "symbols",
    ("symbol",),
    {
        "symbol": read_qualified_name,
        "rule": read_string,
        "becomes": matching(rf"{QUALIFIED_NAME}(\(\))?", "format.qualified-name"),
        "fix": read_applicability,
        "since": read_version,
        "shimmed": read_flag,
        "severity": read_severity,
        "note": read_localized,
        "source": read_string,
    },
    {
        "becomes": None,
        "fix": Applicability.MANUAL,
        "since": None,
        "shimmed": False,
        "severity": None,
        "note": None,
    },
)
LIBRARIES = replace(SYMBOLS, name="libraries")
PACKAGES = Section(
    "packages",
    ("modules", "names"),
    {
        "modules": list_of(read_qualified_name, "format.qualified-names"),
        "names": list_of(read_kebab_case, "format.names"),
        "rule": read_string,
        "severity": read_severity,
        "note": read_localized,
        "source": read_string,
    },
    {"modules": (), "names": (), "severity": None, "note": None},
)
PLAIN = Section(
    "plain", ("symbol",), {"symbol": read_qualified_name, "source": read_string}, defaults={}
)
METHODS = Section(
    "methods",
    ("name",),
    {
        "name": read_name,
        "owners": list_of(read_qualified_name, "format.qualified-names"),
        "called": read_flag,
        "rule": read_string,
        "becomes": read_name,
        "fix": read_applicability,
        "shimmed": read_flag,
        "note": read_localized,
        "source": read_string,
    },
    {
        "called": True,
        "becomes": None,
        "fix": Applicability.MANUAL,
        "shimmed": False,
        "note": None,
    },
)
PARAMETERS = Section(
    "parameters",
    ("callable", "parameter"),
    {
        "callable": matching(rf"\.{NAME}|{QUALIFIED_NAME}", "format.name-or-method"),
        "parameter": read_name,
        "position": read_position,
        "meaning": one_of(Meaning),
        "rule": read_string,
        "fix": read_applicability,
        "shimmed": read_flag,
        "without": one_of(WithoutDevice),
        "note": read_localized,
        "source": read_string,
    },
    {
        "position": None,
        "fix": Applicability.SAFE,
        "shimmed": False,
        "without": None,
        "note": None,
    },
)
CALLS = Section(
    "calls",
    ("callable", "becomes"),
    {
        "callable": read_qualified_name,
        "rule": read_string,
        "becomes": read_qualified_name,
        "fix": read_applicability,
        "positions": list_of(read_name, "format.names"),
        "keywords": list_of(read_name, "format.names"),
        "drops": list_of(read_name, "format.names"),
        "same": read_constants,
        "when": read_constants,
        "adds": read_constants,
        "neutral": read_flag,
        "note": read_localized,
        "source": read_string,
    },
    {
        "fix": Applicability.MANUAL,
        "positions": (),
        "keywords": (),
        "drops": (),
        "same": {},
        "when": {},
        "adds": {},
        "neutral": False,
        "note": None,
    },
)
ENVIRONMENT = Section(
    "environment",
    ("variable",),
    {
        "variable": read_name,
        "rule": read_string,
        "becomes": read_name,
        "fix": read_applicability,
        "severity": read_severity,
        "note": read_localized,
        "read": read_flag,
        "prefix": read_flag,
        "source": read_string,
    },
    {
        "becomes": None,
        "fix": Applicability.MANUAL,
        "severity": None,
        "note": None,
        "read": False,
        "prefix": False,
    },
)
LAUNCH = Section(
    "launch",
    ("place", "name", "value", "beside"),
    {
        "place": one_of(Place),
        "name": read_string,  # regular expressions, which those of a user have to be: `RuleFile`
        "value": read_string,
        "rule": read_string,
        "becomes": read_string,
        "fix": read_applicability,
        "severity": read_severity,
        "note": read_localized,
        "evidence": list_of(read_string, "format.texts"),
        "unless": list_of(read_string, "format.texts"),
        "beside": read_string,
        "without": read_string,
        "releases": list_of(read_string, "format.texts"),
        "any-device": read_string,
        "chooses": one_of(Choice),
        "source": read_string,
    },
    {
        "value": None,
        "becomes": None,
        "fix": Applicability.MANUAL,
        "severity": None,
        "note": None,
        "evidence": (),
        "unless": (),
        "beside": None,
        "without": None,
        "releases": (),
        "any-device": None,
        "chooses": None,
    },
)
OPERATORS = Section(
    "operators",
    ("operator",),
    {
        "operator": read_qualified_name,
        "rule": read_string,
        "gives": read_name,
        "cost": read_position,
        "advice": read_localized,
        "method": read_flag,
        "waits": read_flag,
        "when": one_of(When),
        "size": read_position,
        "source": read_string,
    },
    {"method": False, "waits": True, "when": When.ALWAYS, "size": 0},
)
MEMBERS = Section(
    "members",
    ("owner",),
    {
        "owner": read_qualified_name,
        "rule": read_string,
        "names": list_of(read_name, "format.names"),
        "prefix": read_name,
        "grows": read_flag,
        "renamed": read_names,
        "source": read_string,
    },
    {"prefix": "", "grows": False, "renamed": {}},
)
SIGNATURES = Section(
    "signatures",
    ("callable",),
    {
        "callable": matching(rf"\.{NAME}|{QUALIFIED_NAME}", "format.name-or-method"),
        "rule": read_string,
        "parameters": list_of(read_name, "format.names"),
        "positional": read_position,
        "grows": read_flag,
        "dictionary": read_flag,
        "renamed": read_names,
        "drops": list_of(read_name, "format.names"),
        "types": read_types,
        "choices": read_choices,
        "older": list_of(read_name, "format.names"),
        "note": read_localized,
        "source": read_string,
    },
    {
        "positional": None,
        "grows": False,
        "dictionary": False,
        "renamed": {},
        "drops": (),
        "types": {},
        "choices": {},
        "older": (),
        "note": None,
    },
)
_OPTION = r"--[A-Za-z][\w-]*"
_CONDITION = rf"{_OPTION}(?: [^\s-]\S*)?"
_read_option = matching(_OPTION, "format.option")
_read_conditions = list_of(
    matching(rf"{_CONDITION}(?: or {_CONDITION})*", "format.option-condition"), "format.texts"
)
SUITE = Section(
    "suite",
    ("option", "needs", "excludes", "choices", "renamed", "profits", "marks"),
    {
        "option": _read_option,
        "owner": one_of(SuiteOwner),
        "rule": read_string,
        "needs": _read_conditions,
        "excludes": _read_conditions,
        "choices": list_of(read_string, "format.texts"),
        "renamed": _read_option,
        "when": _read_conditions,
        "profits": _read_conditions,
        "unless": _read_conditions,
        "marks": read_flag,
        "opens": read_flag,
        "fix": read_applicability,
        "severity": read_severity,
        "note": read_localized,
        "source": read_string,
    },
    {
        "needs": (),
        "excludes": (),
        "choices": (),
        "renamed": None,
        "when": (),
        "profits": (),
        "unless": (),
        "marks": False,
        "opens": False,
        "fix": Applicability.UNSAFE,
        "severity": None,
        "note": None,
    },
)
SUITE_NAMES = Section(
    "suite-names",
    (),
    {
        "owner": one_of(SuiteOwner),
        "takes": one_of(Takes),
        "names": read_string,
        "source": read_string,
    },
    {"owner": None},
)
_RELEASE = r"\d+(?:\.\d+)+(?:rc\d+|\.post\d+)?"
NPU_RELEASES = Section(
    "npu-releases",
    (),
    {
        "cann": matching(CANN_RELEASE, "format.cann-release"),
        "oldest-cann": matching(CANN_RELEASE, "format.cann-release"),
        "releases": list_of(
            matching(rf"{_RELEASE}(?:: 3\.\d+-3\.\d+)?", "format.npu-release"), "format.texts"
        ),
        "source": read_string,
    },
    {"cann": None, "oldest-cann": None},
)
NPU_VARIABLES = Section(
    "npu-variables",
    (),
    {
        "names": read_string,
        "others": read_string,
        "renamed": read_names,
        "source": read_string,
    },
    {"names": "", "others": "", "renamed": {}},
)
SECTIONS = (
    RULES,
    SYMBOLS,
    LIBRARIES,
    PACKAGES,
    PLAIN,
    METHODS,
    PARAMETERS,
    CALLS,
    ENVIRONMENT,
    LAUNCH,
    OPERATORS,
    MEMBERS,
    SIGNATURES,
    SUITE,
    SUITE_NAMES,
    NPU_RELEASES,
    NPU_VARIABLES,
)
