"""The command `npulens`: its parts, each in a file of its own and imported when it is needed."""

import importlib
import io
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path

import click

from npulens import __version__
from npulens.cli.help import CommandGroup
from npulens.cli.refusals import FAILURE, complain

FINDINGS = 1
"""Exit code where there are findings."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """Run the command and end the process."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, who wants the exit code only
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # A path that is no text comes out escaped; in JSON that escape is even the right one.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = cli.main(prog_name="npulens", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        code = INTERRUPTED
    except click.UsageError as error:
        from npulens.cli.usage_errors import show_wrong_usage

        show_wrong_usage(error)
        code = FAILURE
    except click.ClickException as error:
        error.show()
        code = FAILURE
    except OSError as error:  # not of what is read, but of writing, or of the machine
        from npulens.catalog.messages import message, os_error

        complain(message("error.stopped", reason=os_error(error)))
        _discard_output()
        code = FAILURE
    except Exception as error:
        from npulens.workspace.runs.run import internal_error

        complain(*internal_error(error))
        code = FAILURE
    sys.exit(code)


def _discard_output() -> None:
    """What could not be written must not be tried again when Python ends."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name; `check` is the function `check` in `npulens.cli.check`."""

    def __init__(self, *names: str) -> None:
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._names:
            raise KeyError(name)
        command: click.Command = getattr(importlib.import_module(f"npulens.cli.{name}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError("commands are listed in npulens.cli.main")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are listed in npulens.cli.main")


@click.group(
    cls=CommandGroup,
    commands=_Commands(
        *("check", "fix", "migrate", "report", "guide", "shapes", "verify", "instrument"),
        *("rule", "explain", "config", "completion", "server"),
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="npulens")
def cli() -> None:
    """Find what keeps PyTorch GPU code from running well on Huawei Ascend NPUs."""
