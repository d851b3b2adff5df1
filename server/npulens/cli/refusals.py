"""How commands refuse and complain."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

FAILURE = 2
"""Exit code of wrong usage, of input that cannot be checked, and of mistakes of npulens."""


def complain(sentence: str, traceback: str = "") -> None:
    """A sentence on standard error, with a traceback where that is asked for."""
    click.echo(f"npulens: {sentence}", err=True)
    if os.environ.get("NPULENS_TRACEBACK") == "1":
        click.echo(traceback, err=True, nl=False)


class Refusal(click.ClickException):
    """The one sentence that ends a command."""

    exit_code = FAILURE

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message)


@contextmanager
def refusals() -> Iterator[None]:
    """Make a refusal of what the user's files say."""
    from npulens.catalog.loader import CatalogueError
    from npulens.workspace.configuration import ConfigurationError

    try:
        yield
    except (CatalogueError, ConfigurationError) as error:
        raise Refusal(str(error)) from error


def common_folder(paths: Sequence[str]) -> Path:
    """The folder that all paths are in."""
    from npulens.workspace.configuration import absolute

    try:
        return Path(os.path.commonpath([absolute(Path(path)) for path in paths]))
    except ValueError:  # drives of Windows have nothing in common
        return Path()
