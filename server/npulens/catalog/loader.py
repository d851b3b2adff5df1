"""Reads rule files, checks them, and makes them a catalogue. See `docs/rule-format.md`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from npulens.catalog.model import (
    LANGUAGES,
    Applicability,
    Example,
    LocalizedText,
    Rule,
    Severity,
    TorchVersion,
)
from npulens.catalog.tables import (
    Catalogue,
    EnvironmentEntry,
    LaunchEntry,
    Meaning,
    MethodEntry,
    ParameterEntry,
    Place,
    SymbolEntry,
)


class CatalogueError(Exception):
    """A rule file cannot be used; the one sentence names the file, the entry and the reason."""


def rules_folder() -> Path:
    """Where the shipped rules are: in the package when installed, else in the repository."""
    here = Path(__file__).resolve()
    installed = here.parents[1] / "rules"
    return installed if installed.is_dir() else here.parents[3] / "rules"


def load_catalogue(extra_files: Sequence[Path] = ()) -> Catalogue:
    """Everything known: the shipped rules and, over them, those of the user's files.

    Raises:
        CatalogueError: If a file cannot be read or breaks the format.
    """
    folder = rules_folder()
    files = [_RuleFile.read(path, f"rules/{path.name}") for path in sorted(folder.glob("*.json"))]
    if not files:
        raise CatalogueError(f"{folder}: no rule files found")
    files += [_RuleFile.read(path, str(path)) for path in extra_files]

    rules: dict[str, Rule] = {}
    for file in files:
        file.add_rules(rules)
    symbols: dict[str, SymbolEntry] = {}
    methods: dict[str, MethodEntry] = {}
    parameters: dict[str, dict[str, ParameterEntry]] = {}
    environment: dict[str, EnvironmentEntry] = {}
    launch: dict[tuple[object, ...], LaunchEntry] = {}
    for file in files:
        for fields in file.entries(_SYMBOLS, rules):
            symbols[fields["symbol"]] = SymbolEntry(**fields)
        for fields in file.entries(_METHODS, rules):
            methods[fields["name"]] = MethodEntry(**fields)
        for fields in file.entries(_PARAMETERS, rules):
            of_callable = parameters.setdefault(fields["callable"], {})
            of_callable[fields["parameter"]] = ParameterEntry(**fields)
        for fields in file.entries(_ENVIRONMENT, rules):
            environment[fields["variable"]] = EnvironmentEntry(**fields)
        for fields in file.entries(_LAUNCH, rules):
            key = (fields["place"], fields["name"], fields["value"])
            launch[key] = LaunchEntry(**fields)
    return Catalogue(
        rules={rule.code: rule for rule in sorted(rules.values(), key=lambda rule: rule.code)},
        symbols=symbols,
        methods=methods,
        parameters={name: tuple(entries.values()) for name, entries in parameters.items()},
        environment=environment,
        launch={
            place: tuple(entry for entry in launch.values() if entry.place is place)
            for place in Place
        },
    )


class _FormatError(Exception):
    """Why a value is refused; whoever knows the place adds it."""


# Readers: each takes a JSON value and returns what the catalogue holds, or refuses it.

_Reader = Callable[[Any], Any]

_NAME = r"[^\W\d]\w*"
_QUALIFIED_NAME = rf"{_NAME}(?:\.{_NAME})*"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _matching(pattern: str, description: str) -> _Reader:
    matches = re.compile(pattern).fullmatch

    def read(value: object) -> str:
        if not isinstance(value, str) or not matches(value):
            raise _FormatError(f"must be {description}, not {_shown(value)}")
        return value

    return read


def _one_of(
    choices: type[Severity] | type[Applicability] | type[Meaning] | type[Place],
) -> _Reader:
    members: dict[str, Any] = {member.value: member for member in choices}

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in members:
            raise _FormatError(f"must be one of {', '.join(members)}, not {_shown(value)}")
        return members[value]

    return read


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _FormatError(f"must be true or false, not {_shown(value)}")
    return value


def _position(value: object) -> int:
    if type(value) is not int or value < 0:
        raise _FormatError(f"must be a whole number from 0, not {_shown(value)}")
    return value


def _list_of(read: _Reader, description: str) -> _Reader:
    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _FormatError(f"must be a list of {description}, not {_shown(value)}")
        return tuple(map(read, value))

    return read_all


def _localized(value: object) -> LocalizedText:
    if not isinstance(value, dict):
        raise _FormatError(f'must be {{"en": "...", "zh": "..."}}, not {_shown(value)}')
    for language in LANGUAGES:
        text = value.get(language)
        if not isinstance(text, str) or not text:
            raise _FormatError(f'must have a text in the language "{language}"')
    if len(value) > len(LANGUAGES):
        raise _FormatError(f"must have no texts but {' and '.join(LANGUAGES)}")
    return LocalizedText(**value)


def _template(value: object) -> LocalizedText:
    texts = _localized(value)
    for text in texts:
        try:
            names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError:
            raise _FormatError("must not have a brace without its partner") from None
        if not all(map(str.isidentifier, names)):
            raise _FormatError("must have only names between braces, such as {symbol}")
    return texts


def _code(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise _FormatError(f"must be a list of lines of code, not {_shown(value)}")
    return "\n".join(value) + "\n"


def _example(value: object) -> Example:
    if not isinstance(value, dict) or value.keys() != {"before", "after"}:
        raise _FormatError('must hold objects with "before" and "after"')
    after = value["after"]
    return Example(_code(value["before"]), None if after is None else _code(after))


def _pattern(value: object) -> str:
    text: str = _string(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise _FormatError(f"must be a regular expression, not {_shown(value)}") from None
    return text


def _version(value: object) -> TorchVersion:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}", value):
        raise _FormatError(f'must be a version such as "2.7", not {_shown(value)}')
    major, minor = value.split(".")
    return TorchVersion(int(major), int(minor))


_string = _matching(r"(?s).+", "a text")
_kebab_case = _matching(r"[a-z0-9]+(-[a-z0-9]+)*", "a name in kebab-case")
_name = _matching(_NAME, "a name")
_qualified_name = _matching(_QUALIFIED_NAME, "a qualified name")
_severity = _one_of(Severity)
_applicability = _one_of(Applicability)


@dataclass(frozen=True)
class _Section:
    """One list of a rule file: the fields of its entries.

    Attributes:
        name: The name of the list.
        key: The fields that tell an entry from the others.
        readers: Every field, and what reads it.
        defaults: The fields that may be left out.
    """

    name: str
    key: tuple[str, ...]
    readers: Mapping[str, _Reader]
    defaults: Mapping[str, Any]

    def read(self, entry: object) -> dict[str, Any]:
        """All fields of an entry."""
        if not isinstance(entry, dict):
            raise _FormatError(f"must be an object, not {_shown(entry)}")
        fields = dict(self.defaults)
        for name, value in entry.items():
            reader = self.readers.get(name)
            if reader is None:
                raise _FormatError(f'unknown field "{name}"')
            try:
                fields[name] = reader(value)
            except _FormatError as error:
                raise _FormatError(f'"{name}" {error}') from None
        if len(fields) < len(self.readers):
            missing = next(name for name in self.readers if name not in fields)
            raise _FormatError(f'field "{missing}" is missing')
        return fields

    def place(self, index: int, entry: object) -> str:
        """How an entry is called in an error, such as `symbols[12] torch.cuda.seed`."""
        if not isinstance(entry, dict):
            return f"{self.name}[{index}]"
        words = [str(entry[field]) for field in self.key if isinstance(entry.get(field), str)]
        return " ".join([f"{self.name}[{index}]", *words])


_RULES = _Section(
    "rules",
    ("code",),
    {
        "code": _matching(r"[A-Z]{2,10}\d{3}", "two to ten capital letters and three digits"),
        "name": _kebab_case,
        "severity": _severity,
        "message": _template,
        "explanation": _localized,
        "examples": _list_of(_example, "examples"),
        "valid": _list_of(_code, "pieces of code"),
        "file": _string,
    },
    {"examples": (), "valid": (), "file": "example.py"},
)
_SYMBOLS = _Section(
    "symbols",
    ("symbol",),
    {
        "symbol": _qualified_name,
        "rule": _string,
        "becomes": _matching(rf"{_QUALIFIED_NAME}(\(\))?", "a qualified name"),
        "agnostic": _matching(rf"{_QUALIFIED_NAME}(\(\))?", "a qualified name"),
        "fix": _applicability,
        "since": _version,
        "shimmed": _flag,
        "severity": _severity,
        "note": _localized,
        "source": _string,
    },
    {
        "becomes": None,
        "agnostic": None,
        "fix": Applicability.MANUAL,
        "since": None,
        "shimmed": False,
        "severity": None,
        "note": None,
    },
)
_METHODS = _Section(
    "methods",
    ("name",),
    {
        "name": _name,
        "owners": _list_of(_qualified_name, "qualified names"),
        "called": _flag,
        "rule": _string,
        "becomes": _name,
        "fix": _applicability,
        "shimmed": _flag,
        "note": _localized,
        "source": _string,
    },
    {
        "called": True,
        "becomes": None,
        "fix": Applicability.MANUAL,
        "shimmed": False,
        "note": None,
    },
)
_PARAMETERS = _Section(
    "parameters",
    ("callable", "parameter"),
    {
        "callable": _matching(
            rf"\.{_NAME}|{_QUALIFIED_NAME}", "a qualified name, or a dot and a method's name"
        ),
        "parameter": _name,
        "position": _position,
        "meaning": _one_of(Meaning),
        "rule": _string,
        "shimmed": _flag,
        "note": _localized,
        "source": _string,
    },
    {"position": None, "shimmed": False, "note": None},
)
_ENVIRONMENT = _Section(
    "environment",
    ("variable",),
    {
        "variable": _name,
        "rule": _string,
        "becomes": _name,
        "fix": _applicability,
        "severity": _severity,
        "note": _localized,
        "source": _string,
    },
    {"becomes": None, "fix": Applicability.MANUAL, "severity": None, "note": None},
)
_LAUNCH = _Section(
    "launch",
    ("place", "name", "value"),
    {
        "place": _one_of(Place),
        "name": _pattern,
        "value": _pattern,
        "rule": _string,
        "becomes": _string,
        "fix": _applicability,
        "severity": _severity,
        "note": _localized,
        "evidence": _list_of(_string, "texts"),
        "unless": _list_of(_string, "texts"),
        "source": _string,
    },
    {
        "value": None,
        "becomes": None,
        "fix": Applicability.MANUAL,
        "severity": None,
        "note": None,
        "evidence": (),
        "unless": (),
    },
)
_SECTIONS = (_RULES, _SYMBOLS, _METHODS, _PARAMETERS, _ENVIRONMENT, _LAUNCH)


@dataclass(frozen=True)
class _RuleFile:
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
    def read(cls, path: Path, label: str) -> "_RuleFile":
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise CatalogueError(f"{label}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CatalogueError(f"{label}: not UTF-8 text") from error
        except json.JSONDecodeError as error:
            reason = f"line {error.lineno}: not valid JSON: {error.msg}"
            raise CatalogueError(f"{label}: {reason}") from error
        except (RecursionError, ValueError) as error:
            raise CatalogueError(f"{label}: not usable JSON: {error}") from error
        try:
            return cls._checked(content, label)
        except _FormatError as error:
            raise CatalogueError(f"{label}: {error}") from None

    @classmethod
    def _checked(cls, content: object, label: str) -> "_RuleFile":
        if not isinstance(content, dict):
            raise _FormatError("must be a JSON object")
        if "family" not in content:
            raise _FormatError('field "family" is missing')
        lists = {section.name: content.get(section.name, []) for section in _SECTIONS}
        for name in content.keys() - lists.keys() - {"family"}:
            raise _FormatError(f'unknown field "{name}"')
        for name, value in lists.items():
            if not isinstance(value, list):
                raise _FormatError(f'"{name}" must be a list, not {_shown(value)}')
        try:
            return cls(label, _kebab_case(content["family"]), lists)
        except _FormatError as error:
            raise _FormatError(f'"family" {error}') from None

    def add_rules(self, rules: dict[str, Rule]) -> None:
        """Add this file's rules to those by name of the files before it."""
        codes = {rule.code: rule.name for rule in rules.values()}
        for fields in self._entries(_RULES):
            rule = Rule(family=self.family, **fields)
            if rule.code in codes:
                taken = f'code {rule.code} is already taken by "{codes[rule.code]}"'
                raise CatalogueError(f"{self.label}: rules {rule.name}: {taken}")
            if rule.name in rules:
                taken = f'name "{rule.name}" is already taken by {rules[rule.name].code}'
                raise CatalogueError(f"{self.label}: rules {rule.code}: {taken}")
            rules[rule.name] = rule
            codes[rule.code] = rule.name

    def entries(self, section: _Section, rules: Mapping[str, Rule]) -> Iterator[dict[str, Any]]:
        """The fields of each entry of a table, the rule's name replaced by the rule."""
        seen: set[tuple[object, ...]] = set()

        def resolve(fields: dict[str, Any]) -> None:
            key = tuple(fields[field] for field in section.key)
            if key in seen:
                raise _FormatError("is there twice")
            seen.add(key)
            rule = rules.get(fields["rule"])
            if rule is None:
                raise _FormatError(f"unknown rule {_shown(fields['rule'])}")
            fields["rule"] = rule
            if "becomes" not in fields or fields["becomes"] is not None:
                return
            if fields["fix"] is not Applicability.MANUAL:
                raise _FormatError(f'"fix" is {fields["fix"].value} but there is no "becomes"')
            if any("{replacement}" in text for text in rule.message):
                raise _FormatError(f'the message of "{rule.name}" needs a "becomes"')

        return self._entries(section, resolve)

    def _entries(
        self, section: _Section, finish: Callable[[dict[str, Any]], None] | None = None
    ) -> Iterator[dict[str, Any]]:
        for index, entry in enumerate(self.lists[section.name]):
            try:
                fields = section.read(entry)
                if finish is not None:
                    finish(fields)
            except _FormatError as error:
                place = section.place(index, entry)
                raise CatalogueError(f"{self.label}: {place}: {error}") from None
            yield fields
