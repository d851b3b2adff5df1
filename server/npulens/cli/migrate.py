"""`npulens migrate`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.main import FINDINGS
from npulens.cli.next_step import name_next_step
from npulens.cli.options import (
    dirty_option,
    jobs_option,
    settings,
    settings_options,
    show_skipped_option,
    unsafe_option,
)
from npulens.cli.progress_bar import Progress
from npulens.cli.refusals import FAILURE, Refusal, complain, refusal, wrong_usage
from npulens.cli.repair import clean_trees

if TYPE_CHECKING:
    from npulens.catalog.model import Language, LocalizedText
    from npulens.workspace.fixing.change_log import ChangeLog
    from npulens.workspace.migrating.migration import Request


_EPILOG = """\b
Examples:
  npulens migrate project -o project-npu
  npulens migrate project -o project-npu --unsafe-fixes --migration-style device-agnostic
  npulens migrate project -o project-ddp --distributed --entry train.py --model net
  npulens migrate project --in-place

Exit codes: 0 nothing is left to do, 1 something is, 2 wrong usage or an error."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("source", metavar="SRC")
@click.option("-o", "--output", metavar="DST", help="Where the migrated copy shall be.")
@click.option("--in-place", is_flag=True, help="Change SRC itself; git can take that back.")
@unsafe_option
@click.option(
    "--distributed", is_flag=True, help="Let the script --entry train in one process per card."
)
@click.option("--entry", metavar="FILE", help="That script, as seen from SRC.")
@click.option(
    "--model",
    metavar="NAME",
    help="The variables that hold its models; without it, all that are trained.",
)
@click.option(
    "--log-folder",
    metavar="DIR",
    help="Where the log goes, if not to `npulens-migration` in the migrated tree.",
)
@dirty_option
@settings_options
@show_skipped_option
@jobs_option
@click.pass_context
def migrate(
    context: click.Context,
    /,
    source: str,
    output: str | None,
    in_place: bool,
    unsafe_fixes: bool,
    allow_dirty: bool,
    distributed: bool,
    entry: str | None,
    model: str | None,
    log_folder: str | None,
    config: str | None,
    show_skipped: bool,
    jobs: int | None,
    **options: Any,
) -> None:
    """Make a copy of the folder SRC that is migrated to the NPU, or migrate it --in-place.

    What `npulens fix` does to files is done to all of them; files that npulens does not read are
    copied. A log tells each edit, and what is left to do by hand with an estimate of the work.

    DST must not be there yet, or be an empty folder: it appears as a whole or not at all.

    RULES are codes, names or starts of codes such as NPU1, separated by commas.
    """
    from npulens.catalog.messages import about, message
    from npulens.catalog.model import Applicability
    from npulens.report.change_log_text import migration_summary, wording_of
    from npulens.report.human import printable
    from npulens.report.not_read_text import not_read_list
    from npulens.workspace.files.copying import Reason
    from npulens.workspace.migrating.distribution import Distribution
    from npulens.workspace.migrating.migration import Request

    if in_place == (output is not None):
        raise wrong_usage("usage.where-to")
    if allow_dirty and not in_place:
        raise wrong_usage("usage.dirty-needs-in-place")
    if distributed != (entry is not None):
        raise wrong_usage("usage.distributed-entry")
    folder = Path(source)
    if not source or not folder.is_dir():
        is_file = folder.exists() and source
        problem = message("error.no-folder" if is_file else "error.no-such-folder-there")
        raise Refusal(about(source or repr(""), problem))
    chosen = settings((source,), config, options)
    style = chosen.configuration.style
    request = Request(
        folder,
        chosen.configuration,
        chosen.catalogue,
        Applicability.UNSAFE if unsafe_fixes else Applicability.SAFE,
        None if entry is None else Distribution(_inside(folder, entry), model, style),
        jobs,
        None if log_folder is None else _log_place(log_folder, source, output),
    )
    log = _migrated(request, output, allow_dirty, chosen.language)
    for each in log.left_out:
        if each.reason is not Reason.NOT_WANTED and output is not None:
            click.echo(wording_of(each, chosen.language), err=True)
    for path, problem in log.problems.items():
        complain(about(printable(path), problem))
    if show_skipped:
        click.echo(not_read_list(log.not_read, chosen.language), nl=False)
    click.echo(migration_summary(log, output or source, chosen.language), nl=False)
    scripts = _scripts(request)
    processes = "" if request.distribution is None else "--processes 2 "
    name_next_step(scripts, chosen.language, output or source, processes)
    context.exit(FAILURE if log.problems else FINDINGS if log.left else 0)


def _scripts(request: "Request") -> list[str]:
    """The scripts that may be run next, as seen from the migrated folder."""
    from npulens.workspace.migrating.migration import files_of
    from npulens.workspace.project.training_scripts import training_scripts

    if request.distribution is not None:
        return [request.distribution.entry]
    found = training_scripts(files_of(request), request.source)
    return [os.path.relpath(path, request.source) for path in found]


def _inside(source: Path, entry: str) -> str:
    """A script of the folder, by its path from there.

    Raises:
        Refusal: It is not there.
    """
    from npulens.catalog.messages import about, message

    real, root = os.path.realpath(source / entry), os.path.realpath(source)
    if not real.startswith(root.rstrip(os.sep) + os.sep) or not Path(real).is_file():
        problem = message("error.not-in-folder", folder=source)
        raise Refusal(about(f"--entry {entry}", problem))
    return os.path.relpath(real, root)


def _log_place(log_folder: str, source: str, output: str | None) -> Path:
    """The folder that the user wants the log in, which must be new or empty.

    Raises:
        Refusal: It is not, or lies where it would be in the way.
    """
    from npulens.catalog.messages import about, message
    from npulens.workspace.files.staging import PlaceError, require_place

    place = Path(log_folder)
    for tree in (source, output):
        if tree and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(tree)):
            raise Refusal(about(f"--log-folder {log_folder}", message("error.lies-in", tree=tree)))
    try:
        require_place(Path(source), place)
    except PlaceError as error:
        raise Refusal(about(f"--log-folder {log_folder}", error.text)) from error
    return place


def _migrated(
    request: "Request",
    output: str | None,
    allow_dirty: bool,
    language: "Language",
) -> "ChangeLog":
    """Migrate, and refuse what cannot be.

    Raises:
        Refusal: It cannot.
    """
    from npulens.catalog.messages import about, message
    from npulens.workspace.files.copying import TreeChangedError
    from npulens.workspace.files.locking import LockedError
    from npulens.workspace.files.staging import PlaceError
    from npulens.workspace.migrating.distribution import DistributionError
    from npulens.workspace.migrating.migration import (
        MigrationNeverEndsError,
        files_of,
        migrate_copy,
        migrate_in_place,
    )

    def write(log: "ChangeLog", folder: Path) -> None:
        _write_log(log, request, folder, language)

    place = output or str(request.source)
    bars = _Bars()
    try:
        if output is not None:
            return migrate_copy(request, Path(output), bars, write)
        trees = None if allow_dirty else clean_trees(files_of(request), "error.nothing-migrated")
        return migrate_in_place(request, trees, bars, write)
    except PlaceError as error:
        raise Refusal(about(place, error.text)) from error
    except LockedError as error:
        raise Refusal(about(place, message("error.is-locked"))) from error
    except TreeChangedError as error:
        changed = request.source / str(error)
        reason = message("error.changed-try-again", path=changed)
        raise refusal("error.nothing-migrated", reason=reason) from error
    except DistributionError as error:
        raise refusal("error.nothing-migrated", reason=about(error.place, error.text)) from error
    except MigrationNeverEndsError as error:
        raise refusal("error.nothing-migrated", reason=error.text) from error
    except OSError as error:
        raise Refusal(_failure(error, request, place)) from error
    finally:
        bars.end()


def _failure(error: OSError, request: "Request", place: str) -> "LocalizedText":
    """What cannot be read or written, and why."""
    from npulens.catalog.messages import about, cannot_be_read, cannot_be_written

    failed = Path(os.path.abspath(str(error.filename or place)))  # noqa: PTH100
    source = os.path.abspath(request.source)  # noqa: PTH100
    if place != str(request.source) and failed.is_relative_to(source):
        return about(request.source / failed.relative_to(source), cannot_be_read(error))
    log_folder = request.log_folder
    if log_folder is not None and failed.is_relative_to(os.path.abspath(log_folder)):  # noqa: PTH100
        place = str(log_folder)
    return about(place, cannot_be_written(error))


def _write_log(log: "ChangeLog", request: "Request", folder: Path, language: "Language") -> None:
    """Write all forms of a log into a folder."""
    from npulens.report.change_log_text import (
        JSON_NAME,
        MARKDOWN_NAME,
        change_log_json,
        change_log_markdown,
    )
    from npulens.report.transplant import transplant_tables
    from npulens.workspace.files.writing import write_whole

    texts = {
        JSON_NAME: change_log_json(log, request.configuration, request.applicability, language),
        MARKDOWN_NAME: change_log_markdown(log, request.configuration, language),
        **transplant_tables(log, language),
    }
    for name, text in texts.items():
        write_whole(folder / name, text.encode("utf-8", "backslashreplace"))


class _Bars:
    """Shows how far each part of a migration is."""

    def __init__(self) -> None:
        self._progress = Progress(0)

    def begin(self, total: int) -> None:
        self._progress.clear()
        self._progress = Progress(total)

    def advance(self) -> None:
        self._progress.advance()

    def end(self) -> None:
        self._progress.clear()
