"""`npulens explain`."""

import re
from typing import TYPE_CHECKING

import click

from npulens.cli.help import Command
from npulens.cli.options import language_option, settings
from npulens.cli.refusals import Refusal, refusal

if TYPE_CHECKING:
    from npulens.catalog.model import Language


_EPILOG = """\b
Examples:
  npulens explain train.py:42
  npulens explain scripts/run.sh:3 --language zh"""

_LINE = re.compile(r"0*[1-9][0-9]{0,8}")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("place", metavar="FILE:LINE")
@language_option
def explain(place: str, language: "Language | None") -> None:
    """Say what npulens thinks of one line, and why it is silent where it is."""
    from npulens.catalog.messages import about, message
    from npulens.cli.project import check_project, find_project
    from npulens.report.silence_text import explained_line
    from npulens.workspace.runs.run import document_of

    file, _, number = place.rpartition(":")
    if not file or _LINE.fullmatch(number) is None:
        raise refusal("error.names-no-line", place=place)
    chosen = settings((file,), None, {"language": language})
    project = find_project((file,), chosen, False, False)
    report = next(iter(check_project(project, 1)), None)
    if report is None or report.problem is not None:
        problem = None if report is None else report.problem
        raise Refusal(about(file, problem or message("error.cannot-be-checked")))
    document = report.document or document_of(file)
    if document is None or int(number) > len(document.line_starts):
        raise refusal("error.no-such-line", file=file, line=number)
    found = (*report.findings, *report.settled)
    click.echo(explained_line(document, int(number), found, chosen.language), nl=False)
