"""`npulens check`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from npulens.cli.help import Command
from npulens.cli.options import (
    Settings,
    dirty_option,
    force_exclude_option,
    jobs_option,
    settings,
    settings_options,
    show_skipped_option,
    unsafe_option,
)
from npulens.cli.refusals import FAILURE, Refusal, refusal, wrong_usage

if TYPE_CHECKING:
    from npulens.catalog.message_ids import MessageId
    from npulens.cli.outcome import Filter
    from npulens.cli.project import Project
    from npulens.cli.repair import Repair
    from npulens.workspace.runs.baseline import Acceptance
    from npulens.workspace.runs.file_report import FileReport

_FORMATS = ["human", "concise", "json", "jsonl", "csv", "sarif", "github", "gitlab", "junit"]


_EPILOG = """\b
Examples:
  npulens check
  npulens check src train.ipynb --select NPU1,NPU2 --torch-version 2.8
  npulens check --output-format sarif --output-file npulens.sarif --exit-zero
  npulens check --write-baseline known.json
  npulens check --baseline known.json --min-severity warning
  npulens check --as-library site-packages/suite --output-file suite.json

Exit codes: 0 no findings, 1 findings, 2 wrong usage or an error; with --as-library 0 or 2."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("paths", nargs=-1)
@click.option("--stdin-filename", metavar="NAME", help="Check standard input as a file NAME.")
@click.option(
    "--output-format",
    type=click.Choice(_FORMATS),
    default="human",
    show_default=True,
    help="For people, programs, spreadsheets, or the services that run checks.",
)
@click.option("--output-file", metavar="FILE", help="Write there, and not to standard output.")
@click.option("--statistics", is_flag=True, help="Show how often each rule is broken, not where.")
@click.option(
    "--min-severity",
    type=click.Choice(["error", "warning", "info", "hint"]),
    default="hint",
    help="Leave out what matters less.",
)
@click.option(
    "--explain-silence",
    is_flag=True,
    help="List what belongs to CUDA and needs nothing, too, and why.",
)
@click.option("--exit-zero", is_flag=True, help="End with 0 even if something is found.")
@click.option("--baseline", metavar="FILE", help="Leave out what this file accepts.")
@click.option("--write-baseline", metavar="FILE", help="Accept all there is, in this file.")
@click.option(
    "--add-suppressions", is_flag=True, help="Put comments into the files that accept all there is."
)
@click.option("--fix", is_flag=True, help="Apply safe fixes first, as `npulens fix` does.")
@unsafe_option
@dirty_option
@settings_options
@force_exclude_option
@show_skipped_option
@jobs_option
@click.option("--no-cache", is_flag=True, help="Neither read nor write `.npulens_cache`.")
@click.option(
    "--as-library",
    is_flag=True,
    help="Write a rule file of what in this library does not run, for those who use it.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@click.pass_context
def check(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    stdin_filename: str | None,
    config: str | None,
    watch: bool,
    **options: Any,
) -> None:
    """Check the files among PATHS, and below the folders among them.

    Python files, notebooks, C++ and CUDA sources, shell scripts, Dockerfiles, YAML, JSON, TOML,
    INI, CMake, make and lists of requirements are read, but for what git ignores.

    Without PATHS the current folder is checked; "-" reads standard input. RULES are codes, names
    or starts of codes such as NPU1, separated by commas; they replace those of the configuration.
    """
    reads_stdin = paths == ("-",) or (not paths and stdin_filename is not None)
    if not reads_stdin and ("-" in paths or stdin_filename is not None):
        raise wrong_usage("usage.stdin-and-paths")
    if reads_stdin:
        paths = (stdin_filename or "-",)
    paths = paths or (".",)
    _refuse_combinations(reads_stdin, watch, options)
    if options["as_library"]:
        from npulens.cli.library_command import write_library_rules

        context.exit(write_library_rules(paths, _chosen(paths, config, options), options))
    if watch:
        _watch(paths, config, options)
    chosen = _chosen(paths, config, options)
    code = _check(paths, chosen, reads_stdin, options)
    context.exit(0 if options["exit_zero"] and code != FAILURE else code)


def _watch(paths: Sequence[str], config: str | None, options: dict[str, Any]) -> None:
    """Check again and again, until Ctrl-C."""
    from npulens.cli.watch import watched

    for _ in watched(paths, config):
        try:
            _check(paths, _chosen(paths, config, options), False, options)
        except Refusal as error:  # noqa: PERF203 (the next change may put it right)
            error.show()


_SETTINGS = ("select", "extend_select", "ignore", "torch_version", "style", "language")


def _chosen(paths: Sequence[str], config: str | None, options: dict[str, Any]) -> Settings:
    return settings(paths, config, {name: options[name] for name in _SETTINGS})


def _refuse_combinations(reads_stdin: bool, watch: bool, options: dict[str, Any]) -> None:
    """Refuse what cannot be meant together."""
    changes = options["fix"] or options["add_suppressions"]
    if reads_stdin and (changes or watch):
        raise wrong_usage("usage.stdin-stays")
    if options["fix"] and options["add_suppressions"]:
        raise wrong_usage("usage.fix-or-suppress")
    if watch and changes:
        raise wrong_usage("usage.watch-changes-nothing")
    if options["as_library"] and (
        *(reads_stdin, watch, changes, options["statistics"], options["baseline"]),
        options["write_baseline"],
    ) != (False, False, False, False, None, None):
        raise wrong_usage("usage.library-alone")
    if options["unsafe_fixes"] and not options["fix"]:
        raise wrong_usage("usage.unsafe-needs-fix")
    if options["allow_dirty"] and not changes:
        raise wrong_usage("usage.dirty-needs-change")
    if options["explain_silence"]:
        _require_listing(options)
    if options["statistics"] and options["output_format"] not in ("human", "json"):
        raise wrong_usage("usage.forms-of-statistics")


def _require_listing(options: dict[str, Any]) -> None:
    """Refuse to list what is settled where that cannot be."""
    from npulens.report.formats import KNOW_PROBLEMS_ONLY

    form = options["output_format"]
    if options["statistics"]:
        raise wrong_usage("usage.silence-has-places")
    if form in KNOW_PROBLEMS_ONLY:
        raise wrong_usage("usage.silence-is-no-problem", form=form)


def _check(
    paths: Sequence[str], chosen: Settings, reads_stdin: bool, options: dict[str, Any]
) -> int:
    """Check once, and say what was found; returns the exit code."""
    from npulens.cli.outcome import Output, make_report, make_statistics, show
    from npulens.cli.project import check_project, find_project
    from npulens.cli.settled_summary import Silence
    from npulens.cli.skipped import Skipped
    from npulens.workspace.runs.baseline import Acceptance

    output = Output(options["output_file"])
    make = make_statistics if options["statistics"] else make_report
    report = make(options["output_format"], chosen.language, options["output_file"] is None)
    filters = [_more_important(options["min_severity"]), *_accepted(options["baseline"])]
    acceptance = Acceptance(options["write_baseline"]) if options["write_baseline"] else None
    if acceptance is not None:
        filters.append(acceptance.accept)
    is_changing = options["fix"] or options["add_suppressions"]
    repair = None
    if reads_stdin:
        files: Iterable[FileReport] = [_check_stdin(paths[0], chosen)]
        total, skipped = 1, Skipped(chosen.language, options["show_skipped"])
    else:
        use_cache = not (options["no_cache"] or is_changing)
        project = find_project(paths, chosen, use_cache, options["force_exclude"])
        total = len(project.files) + len(project.problems)
        skipped = Skipped(chosen.language, options["show_skipped"], project.not_read)
        repair = _repair(project, options) if is_changing else None
        files = (
            check_project(project, options["jobs"])
            if repair is None
            else repair.write(options["allow_dirty"])
        )
    is_for_people = options["output_format"] == "human"
    silence = Silence(chosen.language, options["explain_silence"])
    is_shown = is_for_people and options["output_file"] is None

    def last_words() -> str:
        done = "" if repair is None or not is_shown else _what_changed(repair, chosen, options)
        return done + (silence.text() + skipped.text() if is_for_people else "")

    code = show(files, report, output, total, skipped, filters, last_words, silence)
    if repair is not None and not is_shown:
        click.echo(_what_changed(repair, chosen, options), nl=False, err=True)
    if not is_for_people:
        skipped.complain()
    if acceptance is not None:
        _save(acceptance)
    return code


def _repair(project: "Project", options: dict[str, Any]) -> "Repair":
    from npulens.cli.repair import Repair
    from npulens.workspace.fixing.file_fixes import fix_safely, fix_unsafely
    from npulens.workspace.fixing.file_suppressions import suppress_findings

    if options["add_suppressions"]:
        work = suppress_findings
    else:
        work = fix_unsafely if options["unsafe_fixes"] else fix_safely
    return Repair(project, work, options["jobs"])


def _what_changed(repair: "Repair", chosen: Settings, options: dict[str, Any]) -> str:
    from npulens.report.report_wording import changed_summary

    done: MessageId = "report.suppressed" if options["add_suppressions"] else "report.fixed"
    return changed_summary(done, repair.findings, repair.files, chosen.language) + "\n"


def _check_stdin(name: str, chosen: Settings) -> "FileReport":
    from npulens.catalog.messages import cannot_be_read
    from npulens.workspace.project.shim import ShimFinder
    from npulens.workspace.runs.file_report import FileReport
    from npulens.workspace.runs.run import MAX_FILE_SIZE, Checker

    if sys.stdin is None:
        raise refusal("error.stdin-closed")
    try:
        with click.open_file("-", "rb") as stream:
            data = stream.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        return FileReport(name, problem=cannot_be_read(error))
    shims = ShimFinder().states_of_project(chosen.configuration)
    return Checker(chosen.catalogue, chosen.configuration, shims=shims).check_bytes(name, data)


def _more_important(lowest: str) -> "Filter":
    """Leaves out what matters less than `lowest`."""
    from npulens.catalog.model import Severity

    order = list(Severity)
    kept = frozenset(order[: order.index(Severity(lowest)) + 1])

    def leave_out(report: "FileReport") -> "FileReport":
        findings = tuple(f for f in report.findings if f.effective_severity in kept)
        return replace(report, findings=findings)

    return leave_out


def _accepted(file: str | None) -> "Iterator[Filter]":
    """Leaves out what a file accepts, if one is named."""
    if file is None:
        return
    from npulens.catalog.messages import about
    from npulens.workspace.runs.baseline import Baseline, BaselineError

    try:
        yield Baseline.read(file).leave_out
    except BaselineError as error:
        raise Refusal(about(file, error.text)) from error


def _save(acceptance: "Acceptance") -> None:
    from npulens.catalog.messages import about, cannot_be_written

    try:
        acceptance.save()
    except OSError as error:
        raise Refusal(about(acceptance.path, cannot_be_written(error))) from error
