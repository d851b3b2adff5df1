"""What a command names as the next one: running what it has changed."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from npulens.catalog.model import Language

_UNKNOWN = "SCRIPT"


def name_next_step(
    scripts: Sequence[str], language: "Language", folder: str = ".", options: str = ""
) -> None:
    """Print the command that runs the script on the emulated NPU; of several none is named."""
    from npulens.catalog.messages import message
    from npulens.report.human import printable

    script = shlex.quote(scripts[0]) if len(scripts) == 1 else _UNKNOWN
    change = "" if Path(folder) == Path() else f"cd {shlex.quote(folder)} && "
    command = f"{change}npulens verify --as-is {options}{script}"
    click.echo(message("report.next-step", command=printable(command)).in_language(language))
