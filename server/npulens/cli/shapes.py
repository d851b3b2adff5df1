"""The command `npulens shapes`: where shapes depend on data, ranked by how much it hurts."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from npulens.cli.help import Command
from npulens.cli.options import config_option, language_option
from npulens.cli.refusals import FAILURE, common_folder, complain, refusals

if TYPE_CHECKING:
    from npulens.catalog.model import Language


_EPILOG = """\b
Examples:
  npulens shapes src
  npulens shapes src --limit 20
  npulens shapes src --output-format csv --output shapes.csv

Exit codes: 0 done, 2 wrong usage or an error."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--output-format",
    type=click.Choice(["human", "json", "csv"]),
    default="human",
    show_default=True,
    help="A table, one JSON array, or CSV with a heading.",
)
@click.option("--output", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--limit", type=click.IntRange(min=1), help="Only so many places, the worst first.")
@language_option
@config_option
@click.pass_context
def shapes(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    output_format: str,
    output: str | None,
    limit: int | None,
    language: "Language | None",
    config: str | None,
) -> None:
    """Rank the places in PATHS where shapes depend on data or the host waits for the device.

    Also places that `check` does not tell are listed, such as those in evaluation.
    """
    import os
    from dataclasses import replace

    from npulens.catalog.messages import about
    from npulens.report.report_wording import environment_language
    from npulens.report.shape_report import REPORTS
    from npulens.workspace.files.discovery import discover_for
    from npulens.workspace.project.extent import whole_projects
    from npulens.workspace.project.project_facts import project_facts
    from npulens.workspace.runs.shape_run import places_in
    from npulens.workspace.settings.catalogues import configured_catalogue
    from npulens.workspace.settings.configuration import find_configuration, read_configuration

    with refusals():
        folder = common_folder(paths)
        configuration = (
            find_configuration(folder) if config is None else read_configuration(Path(config))
        )
        catalogue = configured_catalogue(configuration)
    found = discover_for(configuration, paths)
    project = project_facts(*whole_projects(found, configuration), catalogue)
    run = places_in(found.files, catalogue, replace(configuration.target, project=project))
    problems = {**found.problems, **run.problems}
    for path, problem in problems.items():
        complain(about(path, problem))
    spoken = language or configuration.language or environment_language(os.environ)
    text = REPORTS[output_format](run.places[:limit], spoken)
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8", newline="")
    context.exit(FAILURE if problems else 0)
