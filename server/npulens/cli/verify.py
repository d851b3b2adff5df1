"""`npulens verify`."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.main import FINDINGS
from npulens.cli.options import settings, settings_options, unsafe_option
from npulens.cli.refusals import FAILURE, Refusal, complain, refusal

if TYPE_CHECKING:
    from npulens.cli.options import Settings
    from npulens.workspace.verifying.copy_migration import CopyMigration
    from npulens.workspace.verifying.verified_run import Task

_MEBIBYTE = 1 << 20


_EXIT_CODES = {
    "passed": 0,
    "limit-reached": 0,
    "not-ready": FINDINGS,
    "stopped": FAILURE,
    "cut": 3,
    "not-emulated": 4,
    "needs": 5,
}
"""By the status of a verdict."""


_EPILOG = """\b
Examples:
  npulens verify train.py -- --epochs 1
  npulens verify train.py --steps 10 --compare
  npulens verify notebook.ipynb --unsafe-fixes
  npulens verify --processes 2 train_ddp.py
  npulens verify --cwd tools --offline tools/train.py -- --device cuda
  npulens verify -m pytest -- tests/test_model.py -k train

Exit codes: 0 it ran to its end on the emulated NPU or to a limit that you gave, 1 it fails as it
would on an NPU, 2 it stopped for a reason of its own, wrong usage or an error, 3 it was cut by the
limit of steps or seconds that holds unless you give one, 4 the emulator lacks something, 5 the
script needs a module, a file, an argument or the like."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "module", metavar="MODULE", help="Run a module instead of a script.")
@click.option(
    "--steps",
    type=click.IntRange(min=0),
    help="End after so many optimizer steps; 0 for no such limit.  [default: 3; of tests all]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    help="End after so many seconds.  [default: 300]",
)
@click.option("--memory", type=click.IntRange(min=256), help="MiB of data a process may have.")
@click.option("--processes", type=click.IntRange(min=1), help="Start so many, as torchrun would.")
@click.option("--cwd", metavar="FOLDER", help="Run in this folder of the project.")
@click.option("--offline", is_flag=True, help="Refuse connections to other machines.")
@click.option("--as-is", is_flag=True, help="Do not migrate first; it is migrated already.")
@unsafe_option
@click.option("--here", is_flag=True, help="Run in the folder itself, as it is, not in a copy.")
@click.option("--compare", is_flag=True, help="Run the original on the CPU, too, and compare.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=1e-3,
    show_default=True,
    help="How far losses and parameters may differ for --compare.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="What random numbers start from."
)
@click.option("--agreement", is_flag=True, help="Put findings of NPU8xx beside what is seen.")
@click.option(
    "--output-format", type=click.Choice(["human", "json"]), default="human", show_default=True
)
@settings_options
@click.pass_context
def verify(
    context: click.Context,
    /,
    script: str | None,
    arguments: tuple[str, ...],
    module: str | None,
    steps: int | None,
    seconds: float | None,
    memory: int | None,
    processes: int | None,
    cwd: str | None,
    offline: bool,
    as_is: bool,
    unsafe_fixes: bool,
    here: bool,
    compare: bool,
    tolerance: float,
    seed: int,
    agreement: bool,
    output_format: str,
    config: str | None,
    **options: Any,
) -> None:
    """Migrate a copy of a project and run SCRIPT in it on an NPU emulated on the CPU.

    SCRIPT is a Python file or a notebook. What stands behind `--` is handed to it. Tests are run
    by pytest, as a module.

    The script is executed, with all rights that you have.
    """
    from npulens.report.verify_report import as_json, as_text
    from npulens.workspace.guiding.guide_state import GuideStateError
    from npulens.workspace.guiding.noted_runs import note_run
    from npulens.workspace.verifying.outcomes import status
    from npulens.workspace.verifying.project_copy import CopyError
    from npulens.workspace.verifying.verification import Request, verify
    from npulens.workspace.verifying.verified_run import CannotVerifyError, Limits

    usual = 0 if module == "pytest" else 3  # tests are to run to their end
    folder, task = _task(script, module, arguments, processes)
    if cwd is not None:
        folder, task = _placed(folder, task, cwd)
    chosen = settings((str(folder),), config, options)
    request = Request(
        folder=folder,
        task=task,
        limits=Limits.given(steps, seconds, memory and memory * _MEBIBYTE, usual=usual),
        seed=seed,
        migration=None if as_is or here else _migration(chosen, unsafe_fixes),
        in_place=here,
        tolerance=tolerance if compare else None,
        with_agreement=agreement,
        offline=offline,
    )
    try:
        found = verify(request, chosen.catalogue)
    except (CannotVerifyError, CopyError) as error:
        raise Refusal(error.text) from error
    form = as_json if output_format == "json" else as_text
    click.echo(form(found, chosen.language), nl=False)
    try:
        note_run(folder, found)
    except GuideStateError as error:
        complain(error.text)
    context.exit(_EXIT_CODES[status(found.verdict.outcome).value])


def _task(
    script: str | None, module: str | None, arguments: tuple[str, ...], processes: int | None
) -> tuple[Path, "Task"]:
    """The folder of the project, and what to run there."""
    from npulens.catalog.messages import about, message
    from npulens.text.kinds import Kind, kind_by_name
    from npulens.workspace.verifying.verified_run import Task

    here = Path(os.path.realpath("."))
    if module is not None:
        given = arguments if script is None else (script, *arguments)
        return here, Task(None, module, given, processes)
    if script is None:
        raise refusal("error.nothing-to-run")
    path = Path(os.path.realpath(script))
    if not path.is_file():
        raise Refusal(about(script, message("error.no-such-file")))
    if kind_by_name(script) is Kind.NOTEBOOK:
        _require_notebook(script, path)
    folder = here if path.is_relative_to(here) else path.parent
    return folder, Task(path.relative_to(folder).as_posix(), None, arguments, processes)


def _placed(folder: Path, task: "Task", cwd: str) -> tuple[Path, "Task"]:
    """The same with the folder to run in, which has to be part of the project.

    A script that does not lie in the current folder would be a project of its own.
    """
    from npulens.catalog.messages import about, message

    place = Path(os.path.realpath(cwd))
    if not place.is_dir():
        raise Refusal(about(cwd, message("error.no-such-folder")))
    if not place.is_relative_to(folder):
        raise Refusal(about(cwd, message("error.outside-of-project", folder=folder)))
    return folder, replace(task, place=place.relative_to(folder).as_posix())


def _require_notebook(script: str, path: Path) -> None:
    """Refuse what only has the name of a notebook."""
    from npulens.catalog.messages import about, cannot_be_read, unreadable
    from npulens.text.notebooks import UnreadableNotebook, notebook_text

    try:
        notebook_text(path.read_bytes())
    except OSError as error:
        raise Refusal(about(script, cannot_be_read(error))) from error
    except UnreadableNotebook as error:
        raise Refusal(about(script, unreadable(error))) from error


def _migration(chosen: "Settings", unsafe_fixes: bool) -> "CopyMigration":
    from npulens.catalog.model import Applicability
    from npulens.workspace.verifying.copy_migration import CopyMigration

    applicability = Applicability.UNSAFE if unsafe_fixes else Applicability.SAFE
    return CopyMigration(chosen.configuration, chosen.catalogue, applicability)
