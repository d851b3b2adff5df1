"""How commands refuse and complain."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from npulens.catalog.message_ids import MessageId
    from npulens.catalog.model import Language, LocalizedText
    from npulens.workspace.runs.file_report import FileReport

FAILURE = 2
"""Exit code of wrong usage, of input that cannot be checked, and of mistakes of npulens."""
_LANGUAGE = "npulens.language"


def speak(language: "Language | None") -> None:
    """Complain in this language for the rest of the command, if it is one."""
    context = click.get_current_context(silent=True)
    if context is not None and language is not None:
        context.meta[_LANGUAGE] = language


def spoken(context: click.Context | None) -> "Language":
    """The language of a command, as far as it is known when something goes wrong."""
    from npulens.report.report_wording import environment_language

    requested: Language | None = None if context is None else context.meta.get(_LANGUAGE)
    return requested or environment_language(os.environ)


def complain(
    text: "LocalizedText", traceback: str = "", language: "Language | None" = None
) -> None:
    """A sentence on standard error, with a traceback where that is requested."""
    language = language or spoken(click.get_current_context(silent=True))
    click.echo(f"npulens: {text.in_language(language)}", err=True)
    if os.environ.get("NPULENS_TRACEBACK") == "1":
        click.echo(traceback, err=True, nl=False)


def complain_of(file: "FileReport") -> None:
    """Why a file was not checked."""
    from npulens.catalog.messages import about

    if file.problem is not None:
        complain(about(file.path or repr(""), file.problem), file.traceback)


class Refusal(click.ClickException):
    """The one sentence that ends a command."""

    exit_code = FAILURE

    def __init__(self, text: "LocalizedText") -> None:
        super().__init__(text.en)
        self._text = text
        self._language = spoken(click.get_current_context(silent=True))

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self._text, language=self._language)


def refusal(name: "MessageId", /, **values: object) -> Refusal:
    """A refusal in these words."""
    from npulens.catalog.messages import message

    return Refusal(message(name, **values))


class WrongUsage(click.UsageError):
    """Words of a command that do not go together."""

    def __init__(self, text: "LocalizedText", ctx: click.Context | None = None) -> None:
        super().__init__(text.en, ctx)
        self.text = text


def wrong_usage(name: "MessageId", /, **values: object) -> WrongUsage:
    """That words of a command do not go together, in these words."""
    from npulens.catalog.messages import message

    return WrongUsage(message(name, **values))


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors in the user's files into refusals.

    Raises:
        Refusal: A file cannot be used.
    """
    from npulens.catalog.messages import LocalizedError

    try:
        yield
    except LocalizedError as error:
        raise Refusal(error.text) from error


def common_folder(paths: Sequence[str]) -> Path:
    """The folder that all paths are in."""
    from npulens.workspace.settings.configuration import absolute

    try:
        return Path(os.path.commonpath([absolute(Path(path)) for path in paths]))
    except ValueError:  # drives of Windows have nothing in common
        return Path()
