"""The settings of a project: `npulens.toml`, or `[tool.npulens]` in `pyproject.toml`."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import (
    LocalizedError,
    about,
    cannot_be_read,
    joined,
    message,
    not_toml,
)
from npulens.catalog.model import (
    LANGUAGES,
    Language,
    LocalizedText,
    MigrationStyle,
    ReportedReason,
    Rule,
    Severity,
    Target,
    TorchVersion,
)
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.tables import Catalogue
from npulens.catalog.verdict_tables import read_reasons
from npulens.text.regular_files import read_regular
from npulens.text.toml import parse_toml
from npulens.workspace.settings.path_patterns import read_pattern
from npulens.workspace.settings.project_version import NEWEST, OLDEST, project_version

CONFIGURATION_FILES = ("npulens.toml", "pyproject.toml")
"""Of two in one folder the first counts."""
_MEGABYTES = 1
"""No configuration is larger."""


class ConfigurationError(LocalizedError):
    """A configuration cannot be used; the one sentence says what, where and what to do."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of a project; lists are empty where nothing is set.

    Attributes:
        torch_version: The PyTorch release line that the code shall run on, or None if nobody says.
        project_version: The newest that the project's own requirements allow, or None.
        autoload: PyTorch loads torch_npu by itself, so that fixes need not import it.
        select: The rules to report, all if empty: codes, names, or starts of codes such as `NPU1`.
        extend_select: Rules to report besides; a rule that is off by default has to be named.
        ignore: The rules to leave out, in the same words.
        exclude: Patterns as in `.gitignore`, relative to `root`.
        respect_gitignore: Whether what git ignores is left out below folders.
        per_file_ignores: Pairs of such a pattern and the rules to leave out where it fits.
        severities: Pairs of a word for rules, as in `select`, and how much they matter.
        reasons: Pairs of a reason that settles places by default, and how much these matter.
        language: The language of messages, or None to follow the environment.
        source: The file all this was read from, or None.
        folder: Where settings that an editor keeps count, if there is no file.
    """

    torch_version: TorchVersion | None = None
    project_version: TorchVersion | None = None
    style: MigrationStyle = Target().style
    autoload: bool = False
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severities: tuple[tuple[str, Severity], ...] = ()
    reasons: tuple[tuple[str, Severity], ...] = ()
    extend_rules: tuple[Path, ...] = ()
    language: Language | None = None
    source: Path | None = None
    folder: Path | None = None

    @property
    def target(self) -> Target:
        """What the analysis needs to know."""
        version = self.torch_version or self.project_version or NEWEST
        reasons = tuple(
            ReportedReason(name, severity, read_reasons(rules_folder())[name].why)
            for name, severity in self.reasons
        )
        return Target(version, self.style, autoload=self.autoload, reasons=reasons)

    @property
    def root(self) -> Path:
        """The folder that `exclude` is relative to."""
        return self.source.parent if self.source else self.folder or Path()

    def place(self, key: str) -> str:
        """How an error names the value of a key."""
        return f'{self.source or "settings"}: "{key}"'


def absolute(path: Path) -> Path:
    """The path from the root; unlike `resolve`, a link stays where it lies."""
    return Path(os.path.normpath(path.absolute()))


Settings = Mapping[str, Any]
"""Fields of a `Configuration` with their values."""


def find_configuration(start: Path, settings: Settings = MappingProxyType({})) -> Configuration:
    """The configuration of a file or folder: that of the nearest folder above it that has one.

    Where it names no PyTorch release, the requirements of the project decide; where it says nothing
    else, the given settings.

    Raises:
        ConfigurationError: It cannot be used.
    """
    start = absolute(start)
    for folder in (start, *start.parents):
        if not os.path.isdir(folder):  # noqa: PTH112 (pathlib's raises for some names)
            continue
        for name in CONFIGURATION_FILES:
            if (found := _read_if_there(folder / name)) is not None:
                configuration = Configuration(**{**settings, **found}, source=folder / name)
                return _with_project_version(configuration, start)
    return _with_project_version(Configuration(**settings), start)


def read_settings(table: Mapping[str, Any], place: str, folder: Path) -> Settings:
    """What an editor keeps under the keys of the configuration; `None` is no value.

    Args:
        table: The keys, in the spelling of the file or as `torchVersion`, and their values.
        place: What they are called in messages.
        folder: The folder that paths are relative to.

    Raises:
        ConfigurationError: A key is not known, or its value not what it should be.
    """
    given = {_kebab_case(key): value for key, value in table.items() if value is not None}
    return _checked(given, place, folder)


def _kebab_case(key: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"-{match[0].lower()}", key)


def _with_project_version(configuration: Configuration, start: Path) -> Configuration:
    if configuration.torch_version is not None:
        return configuration
    folder = configuration.source.parent if configuration.source is not None else start
    return replace(configuration, project_version=project_version(folder))


def read_configuration(path: Path) -> Configuration:
    """The configuration in a file, which has `[tool.npulens]` if it is called `pyproject.toml`.

    Raises:
        ConfigurationError: It is not there or cannot be used.
    """
    source = absolute(path)
    found = _read_if_there(source)
    if found is not None:
        return _with_project_version(Configuration(**found, source=source), path)
    problem = message("settings.nothing-in-file" if path.exists() else "error.no-such-file")
    raise ConfigurationError(about(path, problem))


def is_selected(rule: Rule, configuration: Configuration) -> bool:
    """Whether a rule's findings are wanted: the longest word for it decides, of equals `ignore`.

    Where `select` is silent on them, the rules for what was not checked are wanted too: without
    them, such a file would look like one in order. A rule that is off by default is wanted
    only where its code or name is given in full.
    """
    words = (*configuration.select, *configuration.extend_select)
    if not rule.enabled:
        words = tuple(word for word in words if word in (rule.code, rule.name))
    wanted = max((fitting(word, rule) for word in words), default=0)
    unwanted = max((fitting(word, rule) for word in configuration.ignore), default=0)
    is_default = not configuration.select or rule.unread
    is_default = is_default and rule.enabled
    return wanted > unwanted or (is_default and not unwanted)


def require_known_rules(words: Sequence[str], place: str, catalogue: Catalogue) -> None:
    """Refuse words for rules, as in `select`, that fit none.

    Raises:
        ConfigurationError: One fits none; the sentence names `place`, where the words were read.
    """
    rules = catalogue.rules.values()
    for word in words:
        if not any(fitting(word, rule) for rule in rules):
            known = [name for rule in rules for name in (rule.code, rule.name)]
            problem = message("error.no-such-rule", name=word, hint=nearest(word, known))
            raise ConfigurationError(about(place, problem))


def fitting(word: str, rule: Rule) -> int:
    """How many characters of a rule's code a word such as `NPU1` fits; all where it names it."""
    if word == rule.name:
        return len(rule.code)
    return len(word) if rule.code.startswith(word) else 0


def require_known_words(configuration: Configuration, catalogue: Catalogue) -> None:
    """Refuse a configuration that names rules which there are not.

    Raises:
        ConfigurationError: It does; the sentence says where.
    """
    for key, words in (
        ("select", configuration.select),
        ("extend-select", configuration.extend_select),
        ("ignore", configuration.ignore),
    ):
        require_known_rules(words, configuration.place(key), catalogue)


def nearest(word: str, known: Sequence[str]) -> LocalizedText:
    """The end of a sentence on an unknown word: the one that is meant, if one is close enough."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return message("error.did-you-mean", name=close[0]) if close else LocalizedText("", "")


def parse_torch_version(text: str) -> TorchVersion | None:
    """The release line of a version such as `2.8` or `2.8.0+cpu`."""
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\w+)*(\+[\w.]+)?", text, re.ASCII)
    return TorchVersion(int(match[1]), int(match[2])) if match else None


def is_covered(version: TorchVersion) -> bool:
    """Whether there are tables for a release line."""
    return OLDEST <= version <= NEWEST


class _WrongValueError(Exception):
    """A value is not what it should be.

    Attributes:
        name: The text that says so, with a placeholder for the key.
    """

    def __init__(self, name: MessageId, /, **values: object) -> None:
        super().__init__(name, values)
        self.name: MessageId = name
        self.values = values


class _UnknownReasonError(LocalizedError):
    """There is no such reason, or none that can be overruled; this says which."""


def quoted_choices(choices: Iterable[str]) -> LocalizedText:
    """What may be chosen, in a part of a sentence."""
    return joined((LocalizedText(f'"{each}"', f'"{each}"') for each in choices), "punctuation.or")


_Value = TypeVar("_Value")
_Reader = Callable[[Any, Path], object]
"""From a TOML value, and the folder of its file, to the setting."""


def _version(value: Any, _: Path) -> TorchVersion:
    version = parse_torch_version(value) if isinstance(value, str) else None
    if version is None:
        raise _WrongValueError("settings.version")
    if not is_covered(version):
        raise _WrongValueError("settings.covered-version", oldest=OLDEST, newest=NEWEST)
    return version


def _switch(value: Any, _: Path) -> bool:
    if isinstance(value, bool):
        return value
    raise _WrongValueError("settings.switch")


def _texts(value: Any, _: Path) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    raise _WrongValueError("settings.texts")


def _patterns(value: Any, folder: Path) -> tuple[str, ...]:
    patterns = _texts(value, folder)
    try:
        for pattern in patterns:
            read_pattern(pattern)
    except ValueError:
        raise _WrongValueError("settings.patterns") from None
    return patterns


def _rules_by_pattern(value: Any, folder: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise _WrongValueError("settings.rules-by-pattern")
    _patterns(list(value), folder)
    return tuple((pattern, _texts(words, folder)) for pattern, words in value.items())


def _severities(value: Any, folder: Path) -> tuple[tuple[str, Severity], ...]:
    if not isinstance(value, dict):
        raise _WrongValueError("settings.severities")
    read = _one_of({severity.value: severity for severity in Severity})
    return tuple((word, read(severity, folder)) for word, severity in value.items())


SETTLED = "settled"
"""What a reason does by default."""
NOT_OVERRULED = "rule-off"
"""The reason that is a setting itself."""


def _reasons(value: Any, folder: Path) -> tuple[tuple[str, Severity], ...]:
    if not isinstance(value, dict):
        raise _WrongValueError("settings.reasons")
    severities: Mapping[str, Severity | None] = {each.value: each for each in Severity}
    read = _one_of({**severities, SETTLED: None})
    known = read_reasons(rules_folder()).keys() - {NOT_OVERRULED}
    chosen = [(name, read(severity, folder)) for name, severity in value.items()]
    for name, _ in chosen:
        if name == NOT_OVERRULED:
            raise _UnknownReasonError(message("settings.not-overruled", name=name))
        if name not in known:
            hint = nearest(name, sorted(known))
            raise _UnknownReasonError(message("error.no-such-reason", name=name, hint=hint))
    return tuple((name, severity) for name, severity in chosen if severity is not None)


def _paths(value: Any, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / text for text in _texts(value, folder))


def _one_of(choices: Mapping[str, _Value]) -> Callable[[Any, Path], _Value]:
    def read(value: Any, _: Path) -> _Value:
        if isinstance(value, str) and value in choices:
            return choices[value]
        raise _WrongValueError("settings.choice", choices=quoted_choices(choices))

    return read


_KEYS: Mapping[str, tuple[str, _Reader]] = {
    "torch-version": ("torch_version", _version),
    "migration-style": ("style", _one_of({style.value: style for style in MigrationStyle})),
    "autoload": ("autoload", _switch),
    "select": ("select", _texts),
    "extend-select": ("extend_select", _texts),
    "ignore": ("ignore", _texts),
    "exclude": ("exclude", _patterns),
    "respect-gitignore": ("respect_gitignore", _switch),
    "per-file-ignores": ("per_file_ignores", _rules_by_pattern),
    "severities": ("severities", _severities),
    "reasons": ("reasons", _reasons),
    "extend-rules": ("extend_rules", _paths),
    "language": ("language", _one_of({language: language for language in LANGUAGES})),
}
"""Each key of the file, the field it sets, and what reads it."""


def _read_if_there(path: Path) -> Settings | None:
    """None if there is no such file, or it is a `pyproject.toml` that does not speak of npulens."""
    try:
        data = read_regular(path, _MEGABYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(about(path, cannot_be_read(error))) from error
    is_shared = path.name == "pyproject.toml"
    if is_shared and b"npulens" not in data:  # whatever else is wrong with it
        return None
    table = _parsed(data, path)
    if is_shared:
        tools = table.get("tool")
        own = tools.get("npulens") if isinstance(tools, dict) else None
        if own is None:
            return None
        if not isinstance(own, dict):
            raise ConfigurationError(about(path, message("settings.no-table")))
        table = own
    return _checked(table, str(path), path.parent)


def _parsed(data: bytes, path: Path) -> dict[str, Any]:
    try:
        return parse_toml(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = message("error.line-not-utf-8", line=line)
        raise ConfigurationError(about(path, problem)) from error
    except ValueError as error:
        raise ConfigurationError(about(path, not_toml(error))) from error


def _checked(table: Mapping[str, Any], place: str, folder: Path) -> Settings:
    settings: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            hint = nearest(key, list(_KEYS))
            problem = message("settings.unknown-key", key=key, hint=hint)
            raise ConfigurationError(about(place, problem))
        field, read = _KEYS[key]
        try:
            settings[field] = read(value, folder)
        except _WrongValueError as error:
            problem = message(error.name, key=key, **error.values)
            raise ConfigurationError(about(place, problem)) from None
        except _UnknownReasonError as error:
            raise ConfigurationError(about(f"{place}: {key}", error.text)) from None
    return settings
