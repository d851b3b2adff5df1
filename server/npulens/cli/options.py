"""Options that several commands have, and what they request together with the configuration."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from npulens.cli.refusals import common_folder, refusals, speak

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from npulens.catalog.model import Language
    from npulens.catalog.tables import Catalogue
    from npulens.workspace.settings.configuration import Configuration

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _torch_version(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    from npulens.cli.usage_errors import wrong_value
    from npulens.workspace.settings.configuration import is_covered, parse_torch_version
    from npulens.workspace.settings.project_version import NEWEST, OLDEST

    version = parse_torch_version(value) if value is not None else None
    if version is None and value is not None:
        raise wrong_value("usage.no-version", value=value)
    if version is not None and not is_covered(version):
        covered = {"oldest": OLDEST, "newest": NEWEST}
        raise wrong_value("usage.uncovered-version", version=version, **covered)
    return version


def _style(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    from npulens.catalog.model import MigrationStyle

    return None if value is None else MigrationStyle(value)


def _words(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    words = tuple(word.strip() for value in values for word in value.split(","))
    return words or None


def _language(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    speak(value)
    return value


language_option = click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    callback=_language,
    is_eager=True,  # what is wrong with the other options is reported in it
    help="The language of messages.",
)
config_option = click.option(
    "--config", metavar="FILE", help="The configuration, instead of the nearest one."
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="How many processes to use, if not as many as pay."
)
unsafe_option = click.option(
    "--unsafe-fixes", is_flag=True, help="Apply fixes too that have to be read afterwards."
)
force_exclude_option = click.option(
    "--force-exclude", is_flag=True, help="Leave out what is excluded even where it is named."
)
show_skipped_option = click.option(
    "--show-skipped", is_flag=True, help="List the files and folders that are not read, and why."
)
dirty_option = click.option(
    "--allow-dirty", is_flag=True, help="Fix files even if git could not take that back."
)


def settings_options(function: _Function) -> _Function:
    """The options that override the configuration."""
    for option in (
        language_option,
        click.option(
            "--migration-style",
            "style",
            callback=_style,
            type=click.Choice(["npu", "device-agnostic", "runtime-shim"]),
            help="What migrated code looks like.",
        ),
        click.option(
            "--torch-version",
            callback=_torch_version,
            metavar="VERSION",
            help="The PyTorch release to run on, if not what the project requires.",
        ),
        config_option,
        _rules_option("--ignore", "Not these rules."),
        _rules_option("--extend-select", "These rules too."),
        _rules_option("--select", "Only these rules."),
    ):
        function = option(function)
    return function


def _rules_option(name: str, text: str) -> Callable[[_Function], _Function]:
    return click.option(
        name,
        multiple=True,
        callback=_words,
        metavar="RULES",
        help=text,
        shell_complete=complete_rules,
    )


def complete_rules(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """The rules whose code or name begins with the typed text, of a list with its last word."""
    from click.shell_completion import CompletionItem

    from npulens.catalog.loader import load_catalogue

    before, comma, word = incomplete.rpartition(",")
    rules = load_catalogue().rules.values()
    by_code = [(rule.code, rule.name) for rule in rules if rule.code.startswith(word.upper())]
    by_name = [(rule.name, rule.code) for rule in rules if word and rule.name.startswith(word)]
    return [
        CompletionItem(f"{before}{comma}{found}", help=other) for found, other in by_code or by_name
    ]


def complete_points(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """The points of the guide whose id begins with the typed text."""
    from click.shell_completion import CompletionItem

    from npulens.workspace.guiding.guide_points import guide_plan

    points = (point for point in guide_plan().points if point.id.startswith(incomplete))
    return [CompletionItem(point.id, help=point.title.en) for point in points]


class Settings(NamedTuple):
    """What a command works with."""

    configuration: "Configuration"
    catalogue: "Catalogue"

    @property
    def language(self) -> "Language":
        """The language of messages."""
        from npulens.report.report_wording import environment_language

        return self.configuration.language or environment_language(os.environ)


_NOTHING: Mapping[str, Any] = MappingProxyType({})


def settings(
    paths: Sequence[str],
    file: str | None,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any] = _NOTHING,
) -> Settings:
    """What the file says, or else the nearest one to all of the paths; options come first.

    The defaults count where the nearest file says nothing.

    Raises:
        Refusal: Something of it cannot be used.
    """
    with refusals():
        configuration = configuration_for(paths, file, options, defaults)
        speak(configuration.language)
        return Settings(configuration, _catalogue(configuration, options))


def configuration_for(
    paths: Sequence[str],
    file: str | None,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any] = _NOTHING,
) -> "Configuration":
    """The same without the rules."""
    from npulens.workspace.settings.configuration import find_configuration, read_configuration

    if file is not None:
        configuration = read_configuration(Path(file))
    else:
        configuration = find_configuration(common_folder(paths), defaults)
    given = {field: value for field, value in options.items() if value is not None}
    return replace(configuration, **given)


def _catalogue(configuration: "Configuration", options: Mapping[str, Any]) -> "Catalogue":
    """What the configuration requests, in which every named rule must exist."""
    from npulens.workspace.settings.catalogues import configured_catalogue
    from npulens.workspace.settings.configuration import require_known_rules

    catalogue = configured_catalogue(configuration)
    for key, words in (
        ("select", configuration.select),
        ("extend-select", configuration.extend_select),
        ("ignore", configuration.ignore),
        ("severities", [word for word, _ in configuration.severities]),
        *(("per-file-ignores", words) for _, words in configuration.per_file_ignores),
    ):
        place = f"--{key}" if options.get(key.replace("-", "_")) else configuration.place(key)
        require_known_rules(words, place, catalogue)
    return catalogue
