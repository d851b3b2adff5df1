"""How commands refuse and complain."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from npulens.catalog.model import Language

FAILURE = 2
"""Exit code of wrong usage, of input that cannot be checked, and of mistakes of npulens."""
_LANGUAGE = "npulens.language"


def speak(language: "Language | None") -> None:
    """Complain in this language for the rest of the command, if it is one."""
    context = click.get_current_context(silent=True)
    if context is not None and language is not None:
        context.meta[_LANGUAGE] = language


def spoken(context: click.Context | None) -> "Language":
    """The language of a command, as far as it was told when something goes wrong."""
    from npulens.report.report_wording import environment_language

    asked: Language | None = None if context is None else context.meta.get(_LANGUAGE)
    return asked or environment_language(os.environ)


def complain(sentence: str, traceback: str = "", language: "Language | None" = None) -> None:
    """A sentence on standard error, with a traceback where that is asked for."""
    from npulens.catalog.error_messages import error_message

    language = language or spoken(click.get_current_context(silent=True))
    click.echo(f"npulens: {error_message(sentence, language)}", err=True)
    if os.environ.get("NPULENS_TRACEBACK") == "1":
        click.echo(traceback, err=True, nl=False)


class Refusal(click.ClickException):
    """The one sentence that ends a command."""

    exit_code = FAILURE

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._language = spoken(click.get_current_context(silent=True))

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message, language=self._language)


def show_wrong_usage(error: click.UsageError) -> None:
    """What is wrong with the words of a command, and how it is used."""
    from npulens.catalog.error_messages import error_message

    language = spoken(error.ctx)
    sentence = error_message(error.format_message(), language)
    if language == "en" or error.ctx is None:
        click.UsageError(sentence, error.ctx).show()
        return
    usage = error.ctx.get_usage().replace("Usage: ", "用法：", 1)
    help_line = f"请用“{error.ctx.command_path} --help”查看帮助。"
    click.echo(f"{usage}\n{help_line}\n\n错误：{sentence}", err=True)


@contextmanager
def refusals() -> Iterator[None]:
    """Make a refusal of what the user's files say."""
    from npulens.catalog.loader import CatalogueError
    from npulens.workspace.settings.configuration import ConfigurationError

    try:
        yield
    except (CatalogueError, ConfigurationError) as error:
        raise Refusal(str(error)) from error


def common_folder(paths: Sequence[str]) -> Path:
    """The folder that all paths are in."""
    from npulens.workspace.settings.configuration import absolute

    try:
        return Path(os.path.commonpath([absolute(Path(path)) for path in paths]))
    except ValueError:  # drives of Windows have nothing in common
        return Path()
