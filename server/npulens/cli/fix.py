"""`npulens fix`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.main import FINDINGS
from npulens.cli.next_step import name_next_step
from npulens.cli.options import (
    dirty_option,
    force_exclude_option,
    jobs_option,
    settings,
    settings_options,
    show_skipped_option,
    unsafe_option,
)
from npulens.cli.refusals import FAILURE, complain, complain_of, wrong_usage

if TYPE_CHECKING:
    from npulens.cli.repair import Repair
    from npulens.cli.skipped import Skipped

_EPILOG = """\b
Examples:
  npulens fix
  npulens fix src --select NPU1 --unsafe-fixes
  npulens fix --diff > npu.patch

Exit codes: 0 nothing is left to do (with --diff: to change), 1 something is, 2 wrong usage or an
error."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("paths", nargs=-1)
@unsafe_option
@click.option(
    "--merge-projections",
    is_flag=True,
    help="With --unsafe-fixes: one layer for the two that a fused SwiGLU or GEGLU joins. Older "
    "states of optimizers do not fit it.",
)
@click.option("--diff", is_flag=True, help="Change nothing; print a patch for `git apply`.")
@dirty_option
@settings_options
@force_exclude_option
@show_skipped_option
@jobs_option
@click.pass_context
def fix(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    unsafe_fixes: bool,
    merge_projections: bool,
    diff: bool,
    allow_dirty: bool,
    config: str | None,
    jobs: int | None,
    force_exclude: bool,
    show_skipped: bool,
    **options: Any,
) -> None:
    """Fix the files among PATHS and below, and say what is left to do by hand.

    Only safe fixes are applied unless more is asked for: results stay the same and nothing is
    lost. Without PATHS the current folder is fixed. A git tree with changes that are in no commit
    is left alone.

    RULES are codes, names or starts of codes such as NPU1, separated by commas.
    """
    from npulens.cli.outcome import Output, make_report, show
    from npulens.cli.project import find_project
    from npulens.cli.repair import Repair
    from npulens.cli.skipped import Skipped
    from npulens.report.report_wording import changed_summary
    from npulens.workspace.fixing.file_fixes import MergingFixes, fix_safely, fix_unsafely
    from npulens.workspace.project.training_scripts import training_scripts

    paths = paths or (".",)
    chosen = settings(paths, config, options)
    project = find_project(paths, chosen, use_cache=False, force_exclude=force_exclude)
    if merge_projections and not unsafe_fixes:
        raise wrong_usage("usage.merging-is-unsafe")
    merging = MergingFixes(chosen.configuration, is_written=not diff)
    unsafely = merging if merge_projections else fix_unsafely
    repair = Repair(project, unsafely if unsafe_fixes else fix_safely, jobs)
    skipped = Skipped(chosen.language, show_skipped, project.not_read)
    if diff:
        context.exit(_print_patches(repair, skipped))

    def last_words() -> str:
        done = changed_summary("report.fixed", repair.findings, repair.files, chosen.language)
        return f"{done}\n{skipped.text()}"

    total = len(project.files) + len(project.problems)
    report = make_report("human", chosen.language, True)
    files, output = repair.write(allow_dirty), Output(None)
    code = show(files, report, output, total, skipped, last_words=last_words)
    _complain_of_unmerged(repair)
    scripts = training_scripts(project.files, Path()) if repair.findings else []
    if scripts:
        name_next_step([os.path.relpath(path) for path in scripts], chosen.language)
    context.exit(code)


def _print_patches(repair: "Repair", skipped: "Skipped") -> int:
    problems = 0
    for change in repair.patches():
        if isinstance(change, bytes):
            click.echo(change, nl=False)
            continue
        skipped.add(change)
        if change.problem is not None:
            problems += 1
            complain_of(change)
    skipped.complain()
    _complain_of_unmerged(repair)
    return FAILURE if problems else FINDINGS if repair.files else 0


def _complain_of_unmerged(repair: "Repair") -> None:
    """Say which projections stay two, and why."""
    from npulens.catalog.messages import message

    for place, reason in repair.unmerged:
        complain(message("merging.not-merged", place=place, reason=reason))
