"""The command `npulens report`: a page about a project, for engineers and managers."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.options import jobs_option, settings, settings_options, show_skipped_option
from npulens.cli.refusals import (
    FAILURE,
    common_folder,
    complain_of,
    refusal,
    refusals,
    wrong_usage,
)

if TYPE_CHECKING:
    from npulens.cli.project import Project
    from npulens.cli.skipped import Skipped
    from npulens.workspace.project.reached_files import ReachedFiles
    from npulens.workspace.runs.file_report import FileReport
    from npulens.workspace.settings.configuration import Settings

_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}
"""By the ending of the file that is written."""


_EPILOG = """\b
Examples:
  npulens report . -o report.html
  npulens report src scripts -o report.html --language zh --title "My model"
  npulens report . --format markdown

Exit codes: 0 written, 2 wrong usage, an error, or files not checked."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-o", "--output-file", default="-", metavar="FILE", help='Write there; "-" is standard output.'
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    help="A page or a short text; if not said, by the ending of FILE, else markdown.",
)
@click.option("--title", help="The name of the project, instead of that of its folder.")
@click.option(
    "--editor-links", is_flag=True, help="Links open VS Code at the line, on this machine only."
)
@settings_options
@show_skipped_option
@jobs_option
@click.option("--no-cache", is_flag=True, help="Neither read nor write `.npulens_cache`.")
@click.option(
    "--editor-settings",
    metavar="JSON",
    help="What counts where the configuration says nothing, under the same keys.",
)
@click.pass_context
def report(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    output_file: str,
    form: str | None,
    title: str | None,
    editor_links: bool,
    config: str | None,
    show_skipped: bool,
    jobs: int | None,
    no_cache: bool,
    editor_settings: str | None,
    **options: Any,
) -> None:
    """Write what moving the files in PATHS to the NPU takes: how much runs, what is left, where.

    The page is one file that needs no network; docs/report.md says what its figures mean.
    """
    from npulens.cli.outcome import Output
    from npulens.cli.project import find_project, guide_of_project, reached_files
    from npulens.cli.skipped import Skipped
    from npulens.report.locations import FileNames
    from npulens.report.page_contents import page_of
    from npulens.report.page_model import Results
    from npulens.workspace.settings.configuration import absolute

    form = form or _format_of(output_file)
    date = _today()
    is_standard = output_file == "-"
    output = Output(None if is_standard else output_file)
    chosen = settings(paths, config, options, _kept_by_editor(editor_settings, _root(paths)))
    project = find_project(paths, chosen, not no_cache)
    skipped = Skipped(chosen.language, show_skipped, project.not_read)
    reports = _checked(project, jobs, skipped)
    root = _root(paths)
    reached = reached_files(project, chosen.catalogue, root)
    writing = None if is_standard else absolute(Path(output_file))
    guide = guide_of_project(root, reports, reached, writing)
    folder = Path.cwd() if is_standard else absolute(Path(output_file)).parent
    results = Results(
        title or root.name or str(root),
        reports,
        chosen.catalogue,
        chosen.configuration.target,
        FileNames(str(root), str(folder), editor_links),
        date,
        skipped.found,
        *_reached(project, reached),
        guide,
    )
    page = page_of(results, chosen.language)
    if form == "html":
        from npulens.report.page_html import as_html

        output.write(as_html(page))
    else:
        from npulens.report.page_markdown import as_markdown

        output.write(as_markdown(page))
    output.close()
    skipped.complain()
    context.exit(FAILURE if any(each.problem is not None for each in reports) else 0)


def _reached(
    project: "Project", found: "ReachedFiles"
) -> "tuple[set[str], list[tuple[str, list[str]]]]":
    """The files without PyTorch, and what each script imports, as the reports name them."""
    from npulens.workspace.settings.configuration import absolute

    names = {absolute(file): str(file) for file in project.files}
    scripts = [
        (names[each.path], [names[path] for path in each.reached]) for each in found.scripts()
    ]
    return {names[file] for file in found.without_torch()}, scripts


def _format_of(file: str) -> str:
    if file == "-":
        return "markdown"
    form = _FORMATS.get(Path(file).suffix.lower())
    if form is None:
        raise wrong_usage("usage.form-of-file", file=file)
    return form


def _checked(project: "Project", jobs: int | None, skipped: "Skipped") -> "list[FileReport]":
    """The reports of all files; what went wrong is said at once."""
    from npulens.cli.progress_bar import Progress
    from npulens.cli.project import check_project

    progress = Progress(len(project.files) + len(project.problems))
    reports = []
    for each in check_project(project, jobs):
        progress.advance()
        skipped.add(each)
        if each.problem is not None:
            progress.clear()
            complain_of(each)
        reports.append(each)
    progress.clear()
    return reports


def _kept_by_editor(text: str | None, folder: Path) -> "Settings":
    """The settings of an editor for a folder, as the language server reads them."""
    from npulens.workspace.settings.configuration import read_settings

    if text is None:
        return {}
    try:
        table = json.loads(text)
    except ValueError as error:
        raise wrong_usage("usage.settings-not-json", reason=error) from error
    if not isinstance(table, dict):
        raise wrong_usage("usage.settings-object")
    with refusals():
        return {"folder": folder, **read_settings(table, "--editor-settings", folder)}


def _root(paths: Sequence[str]) -> Path:
    """The folder that the page is about."""
    folder = common_folder(paths)
    return folder if folder.is_dir() else folder.parent


def _today() -> str:
    """The date of the report, which `SOURCE_DATE_EPOCH` sets for who compares reports."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = time.gmtime(None if given is None else int(given))
    except (ValueError, OverflowError, OSError) as error:
        raise refusal("error.no-time", given=given) from error
    return time.strftime("%Y-%m-%d", moment)
