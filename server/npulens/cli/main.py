"""The commands. Each imports what it needs when it runs, so that starting costs little."""

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npulens import __version__
from npulens.cli.refusals import FAILURE, Refusal, common_folder, complain, refusals
from npulens.cli.shapes import shapes

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.catalog.tables import Catalogue
    from npulens.report.human import HumanReport
    from npulens.report.json_report import JsonLinesReport
    from npulens.workspace.configuration import Configuration
    from npulens.workspace.run import FileReport

FINDINGS = 1
"""Exit code where there are findings."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """The command `npulens`."""
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
    except click.ClickException as error:
        error.show()
        code = FAILURE
    except OSError as error:  # not of what is read, but of writing, or of the machine
        complain(f"stopped: {error.strerror}")
        _discard_output()
        code = FAILURE
    except Exception as error:
        from npulens.workspace.run import internal_error

        complain(*internal_error(error))
        code = FAILURE
    sys.exit(code)


def _discard_output() -> None:
    """What could not be written must not be tried again when Python ends."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="npulens")
def cli() -> None:
    """Find what keeps PyTorch GPU code from running well on Huawei Ascend NPUs."""


def _torch_version(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    from npulens.workspace.configuration import parse_torch_version

    version = parse_torch_version(value) if value is not None else None
    if version is None and value is not None:
        raise click.BadParameter(f'"{value}" is no PyTorch version, such as 2.8')
    return version


def _style(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    from npulens.catalog.model import MigrationStyle

    return None if value is None else MigrationStyle(value)


def _words(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    words = tuple(word.strip() for value in values for word in value.split(","))
    return words or None


@cli.command(epilog="Exit codes: 0 no findings, 1 findings, 2 wrong usage or an error.")
@click.argument("paths", nargs=-1)
@click.option("--stdin-filename", metavar="NAME", help="Check standard input as a file NAME.")
@click.option(
    "--output-format",
    type=click.Choice(["human", "json", "jsonl"]),
    default="human",
    show_default=True,
    help="Text, one JSON array, or one JSON object a line.",
)
@click.option("--select", multiple=True, callback=_words, metavar="RULES", help="Only these rules.")
@click.option(
    "--extend-select", multiple=True, callback=_words, metavar="RULES", help="These rules too."
)
@click.option("--ignore", multiple=True, callback=_words, metavar="RULES", help="Not these rules.")
@click.option("--config", metavar="FILE", help="The configuration, instead of the nearest one.")
@click.option(
    "--torch-version",
    callback=_torch_version,
    metavar="VERSION",
    help="The PyTorch release that the code shall run on, if not what the project requires.",
)
@click.option(
    "--migration-style",
    "style",
    callback=_style,
    type=click.Choice(["npu", "device-agnostic", "runtime-shim"]),
    help="What migrated code looks like.",
)
@click.option("--language", type=click.Choice(["en", "zh"]), help="The language of messages.")
@click.option("--jobs", type=click.IntRange(min=1), help="How many processes to use.")
@click.option("--no-cache", is_flag=True, help="Without effect: there is no cache yet.")
@click.pass_context
def check(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    stdin_filename: str | None,
    output_format: str,
    config: str | None,
    jobs: int | None,
    no_cache: bool,
    **options: Any,
) -> None:
    """Check the files among PATHS, and below the folders among them.

    Python files, shell scripts, Dockerfiles, YAML, JSON, TOML and lists of requirements are read.

    Without PATHS the current folder is checked; "-" reads standard input. RULES are codes, names
    or starts of codes such as NPU1, separated by commas; they replace those of the configuration.
    """
    reads_stdin = paths == ("-",) or (not paths and stdin_filename is not None)
    if not reads_stdin and ("-" in paths or stdin_filename is not None):
        raise click.UsageError("standard input and paths cannot be checked at once")
    if reads_stdin:
        paths = (stdin_filename or "-",)
    paths = paths or (".",)
    with refusals():
        configuration = _configuration(paths, config, options)
        catalogue = _catalogue(configuration, options)

    if reads_stdin:
        files = _check_stdin(paths[0], catalogue, configuration)
    else:
        files = _check_paths(paths, catalogue, configuration, jobs)
    report = _report(output_format, _language(configuration))
    checked = findings = problems = 0
    for file in files:
        if file.problem is not None:
            problems += 1
            complain(f"{file.path or repr('')}: {file.problem}", file.traceback)
            continue
        checked += 1
        if file.document is not None:
            findings += len(file.findings)
            click.echo(report.file(file.document, file.findings), nl=False)
    if checked or output_format != "human":
        click.echo(report.end(checked), nl=False)
    context.exit(FAILURE if problems else FINDINGS if findings else 0)


@cli.command()
@click.argument("code")
@click.option("--language", type=click.Choice(["en", "zh"]), help="The language of the page.")
def rule(code: str, language: "Language | None") -> None:
    """Explain the rule with this CODE or name."""
    from npulens.catalog.rule_page import rule_page
    from npulens.workspace.configuration import nearest

    with refusals():
        configuration = _configuration((".",), None, {"language": language})
        catalogue = _catalogue(configuration, {})
    found = catalogue.rule_named(code) or catalogue.rule_named(code.upper())
    if found is None:
        known = [*catalogue.rules, *(each.name for each in catalogue.rules.values())]
        raise Refusal(f'there is no rule "{code}"{nearest(code, known)}')
    click.echo(rule_page(found, _language(configuration)), nl=False)


cli.add_command(shapes)


@cli.command()
@click.option("--tcp", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Use a socket.")
@click.option(
    "--websocket",
    "websocket_port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Use a WebSocket; needs the package websockets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
def server(port: int | None, websocket_port: int | None, host: str) -> None:
    """Serve an editor: the language server protocol.

    It is spoken over standard input and output or, with a PORT, with the first client that
    connects there; of port 0, which is any free one, the number is told on standard error.
    """
    from npulens.lsp.transports import serve_stdio, serve_tcp, serve_websocket

    if port is not None and websocket_port is not None:
        raise click.UsageError("--tcp and --websocket cannot be used at once")
    try:
        if port is not None:
            serve_tcp(host, port)
        if websocket_port is not None:
            serve_websocket(host, websocket_port)
    except ImportError:
        raise Refusal("a WebSocket needs the package websockets") from None
    except OSError as error:
        raise Refusal(f"cannot listen at {host}: {error.strerror}") from error
    serve_stdio()


def _configuration(
    paths: Sequence[str], file: str | None, options: Mapping[str, Any]
) -> "Configuration":
    """What the file says, or else the nearest one to all of the paths; options come first."""
    from npulens.workspace.configuration import find_configuration, read_configuration

    if file is not None:
        configuration = read_configuration(Path(file))
    else:
        configuration = find_configuration(common_folder(paths))
    given = {field: value for field, value in options.items() if value is not None}
    return replace(configuration, **given)


def _catalogue(configuration: "Configuration", options: Mapping[str, Any]) -> "Catalogue":
    """What the configuration asks for, which must name no rule that there is not."""
    from npulens.workspace.catalogues import configured_catalogue
    from npulens.workspace.configuration import require_known_rules

    catalogue = configured_catalogue(configuration)
    for key, words in (
        ("select", configuration.select),
        ("extend-select", configuration.extend_select),
        ("ignore", configuration.ignore),
    ):
        place = f"--{key}" if options.get(key.replace("-", "_")) else configuration.place(key)
        require_known_rules(words, place, catalogue)
    return catalogue


def _check_stdin(
    name: str, catalogue: "Catalogue", configuration: "Configuration"
) -> "Iterator[FileReport]":
    from npulens.workspace.run import MAX_FILE_SIZE, Checker, FileReport
    from npulens.workspace.shim import ShimFinder

    if sys.stdin is None:
        raise Refusal("standard input is closed")
    try:
        with click.open_file("-", "rb") as stream:
            data = stream.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        yield FileReport(name, problem=f"cannot be read: {error.strerror}")
        return
    shims = ShimFinder().states_of_project(configuration)
    yield Checker(catalogue, configuration, shims=shims).check_bytes(name, data)


def _check_paths(
    paths: Sequence[str], catalogue: "Catalogue", configuration: "Configuration", jobs: int | None
) -> "Iterator[FileReport]":
    from npulens.workspace.discovery import discover
    from npulens.workspace.operators import project_facts
    from npulens.workspace.run import FileReport, check_files
    from npulens.workspace.shim import ShimFinder

    found = discover(paths, configuration.exclude, configuration.root)
    project = project_facts(found.files, found.folders, catalogue)
    for path, problem in found.problems.items():
        yield FileReport(path, problem=problem)
    folder = common_folder(paths)
    shims = ShimFinder().states_of_project(configuration, found.files, folder)
    yield from check_files(found.files, catalogue, configuration, jobs, project, shims)


def _language(configuration: "Configuration") -> "Language":
    from npulens.report.wording import environment_language

    return configuration.language or environment_language(os.environ)


def _report(output_format: str, language: "Language") -> "HumanReport | JsonLinesReport":
    if output_format == "human":
        from npulens.report.human import HumanReport

        return HumanReport(language, sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    from npulens.report import json_report

    if output_format == "json":
        return json_report.JsonReport(language)
    return json_report.JsonLinesReport(language)
