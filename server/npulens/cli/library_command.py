"""`npulens check --as-library`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from npulens.cli.options import Settings
from npulens.cli.outcome import Output
from npulens.cli.project import find_project
from npulens.cli.refusals import FAILURE, complain_of, wrong_usage


def write_library_rules(paths: Sequence[str], chosen: Settings, options: Mapping[str, Any]) -> int:
    """Write the rule file of a library, and say how much there is in it; returns the exit code.

    Raises:
        WrongUsage: The paths are not one folder.
    """
    from npulens.report.report_wording import library_summary
    from npulens.workspace.libraries.rules import examine_library, rule_file

    if len(paths) != 1 or not Path(paths[0]).is_dir():
        raise wrong_usage("usage.library-folder")
    output = Output(options["output_file"])
    project = find_project(paths, chosen, use_cache=False)
    report = examine_library(Path(paths[0]), project.files, project.checker, options["jobs"])
    for problem in (*project.problems, *report.problems):
        complain_of(problem)
    output.write(rule_file(report))
    output.close()
    summary = library_summary(report.name, len(report.stopped), report.modules, chosen.language)
    click.echo(summary, err=True)
    return FAILURE if project.problems or report.problems else 0
