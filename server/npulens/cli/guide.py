"""`npulens guide`."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.main import FINDINGS
from npulens.cli.options import complete_points, jobs_option, settings, settings_options
from npulens.cli.refusals import refusal, refusals, wrong_usage

if TYPE_CHECKING:
    from npulens.cli.options import Settings
    from npulens.workspace.guiding.project_guide import Guide

_EPILOG = """\b
Examples:
  npulens guide .
  npulens guide . --done baseline --note "loss.csv of 3 May"
  npulens guide . --output-format markdown --language zh

Exit codes: 0 nothing is open, 1 something is, 2 wrong usage or an error."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("path")
@click.option(
    "--done",
    multiple=True,
    metavar="ID",
    shell_complete=complete_points,
    help="Tick this point; may be given several times.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="ID",
    shell_complete=complete_points,
    help="Mark this point as skipped; may be given several times.",
)
@click.option(
    "--open",
    "opened",
    multiple=True,
    metavar="ID",
    shell_complete=complete_points,
    help="Take the mark of this point away; may be given several times.",
)
@click.option("--note", default="", metavar="TEXT", help="What is kept with the marks.")
@click.option(
    "--output-format",
    type=click.Choice(["human", "json", "markdown"]),
    default="human",
    show_default=True,
    help="For people, for programs, or for a pull request.",
)
@settings_options
@jobs_option
@click.option("--no-cache", is_flag=True, help="Neither read nor write `.npulens_cache`.")
@click.pass_context
def guide(
    context: click.Context,
    /,
    path: str,
    done: tuple[str, ...],
    skip: tuple[str, ...],
    opened: tuple[str, ...],
    note: str,
    output_format: str,
    config: str | None,
    jobs: int | None,
    no_cache: bool,
    **options: Any,
) -> None:
    """Say which steps of moving the project in PATH to the NPU are done, and which comes next.

    Points are answered from the code, from what tools have left, from runs of `npulens verify` and
    by hand; runs and what is ticked by hand are kept in npulens-guide.json in that folder.
    """
    from npulens.workspace.guiding.guide_state import change_state, marks_by_hand, read_state

    chosen = settings((path,), config, options)
    folder = Path(path)
    if not folder.is_dir():
        from npulens.catalog.messages import about, message
        from npulens.cli.refusals import Refusal

        raise Refusal(about(path, message("error.no-folder")))
    _require_known(done, skip, opened)
    if note and not (done or skip):
        raise wrong_usage("guide.note-needs-tick")
    with refusals():
        read_state(folder)  # what is damaged is said before anything else is looked at
        if done or skip or opened:
            change_state(folder, marks_by_hand(done, skip, opened, note))
    found = _guide(path, chosen, jobs, not no_cache)
    click.echo(_shown(found, output_format, chosen), nl=False)
    context.exit(0 if found.next is None else FINDINGS)


def _require_known(*given: tuple[str, ...]) -> None:
    """Refuse what is no point, or is given twice."""
    from npulens.workspace.guiding.guide_points import guide_plan
    from npulens.workspace.settings.configuration import nearest

    known = [point.id for point in guide_plan().points]
    for name, number in Counter(each for ids in given for each in set(ids)).items():
        if name not in known:
            raise refusal("guide.no-such-point", name=name, hint=nearest(name, known))
        if number > 1:
            raise wrong_usage("guide.ticked-and-opened", name=name)


def _guide(path: str, chosen: "Settings", jobs: int | None, use_cache: bool) -> "Guide":
    """Check the project, and answer all points."""
    from npulens.cli.progress_bar import Progress
    from npulens.cli.project import (
        check_project,
        find_project,
        guide_of_project,
        reached_files,
    )
    from npulens.cli.refusals import complain_of

    project = find_project((path,), chosen, use_cache)
    progress = Progress(len(project.files) + len(project.problems))
    reports = []
    for report in check_project(project, jobs):
        progress.advance()
        if report.problem is not None:
            progress.clear()
            complain_of(report)
        reports.append(report)
    progress.clear()
    root = Path(path)
    return guide_of_project(root, reports, reached_files(project, chosen.catalogue, root))


def _shown(found: "Guide", output_format: str, chosen: "Settings") -> str:
    language = chosen.language
    if output_format == "json":
        from npulens.report.json_text import json_text
        from npulens.workspace.guiding.guide_records import guide_record

        return json_text(guide_record(found, language), indent=2) + "\n"
    if output_format == "markdown":
        from npulens.report.guide.guide_markdown import guide_markdown
        from npulens.report.page_markdown import prose

        return "\n".join(guide_markdown(found, found.root.name, language, prose)) + "\n"
    from npulens.report.guide.guide_text import guide_lines
    from npulens.report.human import printable

    lines = guide_lines(found, language, is_elsewhere=found.root != Path.cwd())
    return "".join(f"{printable(line)}\n" for line in lines)
