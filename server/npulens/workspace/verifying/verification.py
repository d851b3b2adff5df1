"""Verifies a script: copies its project, migrates the copy, runs it and says what came of it."""

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import MigrationStyle, TorchVersion
from npulens.catalog.tables import Catalogue
from npulens.text.document import Document
from npulens.workspace.verifying.agreement import AgreedPlace, agree
from npulens.workspace.verifying.copy_migration import Applied, CopyMigration
from npulens.workspace.verifying.deciding_fixes import deciding_rules
from npulens.workspace.verifying.npu_apis import apis_to_watch, types_to_watch
from npulens.workspace.verifying.original_lines import OriginalLines, document_in
from npulens.workspace.verifying.outcomes import GOOD, LIMITED, Outcome, SeenShapes, Site, Verdict
from npulens.workspace.verifying.project_copy import copy_project
from npulens.workspace.verifying.run_arguments import RunArguments, migrated_arguments
from npulens.workspace.verifying.run_comparison import Comparison, compare
from npulens.workspace.verifying.run_verdicts import (
    api_uses,
    cuda_calls,
    device_events,
    judge,
    type_uses,
)
from npulens.workspace.verifying.test_results import TestResults, judge_tests, test_results
from npulens.workspace.verifying.unreached import Unreached, unreached
from npulens.workspace.verifying.verified_run import (
    Device,
    IsCancelled,
    Limits,
    RunResult,
    Task,
    Watching,
    run,
    torch_release,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be verified, and how.

    Attributes:
        folder: The folder of the project, absolute and without links.
        task: What to run.
        limits: When it ends.
        seed: What random numbers start from.
        migration: What makes the copy ready for the NPU, or None to run it as it is.
        in_place: Whether it runs in the folder itself; it is not migrated then.
        tolerance: How far losses may differ from those of the original, or None to compare none.
        with_agreement: Whether static findings are put beside what is seen.
        offline: Whether connections to other machines are refused.
        with_shapes: Whether the shapes of what is assigned to names are noted, which takes time.
    """

    folder: Path
    task: Task
    limits: Limits
    seed: int = 0
    migration: CopyMigration | None = None
    in_place: bool = False
    tolerance: float | None = None
    with_agreement: bool = False
    offline: bool = False
    with_shapes: bool = False


Watched = tuple[dict[str, str], dict[str, list[str]]]
"""APIs that the NPU lacks, and those with the types that they do not take there."""


class Changes(NamedTuple):
    """What was migrated before a run: how many findings were fixed, and the arguments."""

    fixed: int
    arguments: RunArguments


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of it; all lines are those of the user's files.

    Attributes:
        verdict: What it means.
        style: The migration style of the copy, `None` if it was not migrated.
        fixed: How many findings were fixed before.
        arguments: What became of the arguments of the script.
        steps: How many optimizer steps were made.
        tests: How tests ended, if they were run.
        losses: The losses of the first process that trained.
        cuda_calls: Calls of CUDA that were reached.
        apis: Uses of APIs that the NPU lacks, leaves to the host, or does not list for the type.
        events: Shapes that depended on data, and waits of the host.
        comparison: Beside the original on the CPU, if requested.
        agreement: Beside the static findings, if requested.
        script: What was run, below the folder; `None` for a module.
        unreached: What the script did not come to before a limit ended it; `None` if that is not
            known, or it came to its end.
        output: The last lines that were printed.
        documents: The user's files that are named here, by their paths; of a notebook its cells.
        shapes: Those of names, if requested.
    """

    verdict: Verdict
    style: MigrationStyle | None
    fixed: int
    arguments: RunArguments
    steps: int
    tests: TestResults | None
    losses: tuple[float, ...]
    cuda_calls: tuple[Site, ...]
    apis: tuple[Site, ...]
    events: tuple[Site, ...]
    comparison: Comparison | None
    agreement: tuple[AgreedPlace, ...] | None
    script: str | None
    unreached: tuple[Unreached, ...] | None
    output: tuple[str, ...]
    documents: Mapping[str, Document]
    shapes: tuple[SeenShapes, ...] = ()


def verify(
    request: Request, catalogue: Catalogue, is_cancelled: IsCancelled = lambda: False
) -> Verification:
    """Run the project on the emulated NPU.

    Raises:
        CancelledRunError: Nobody does.
        CannotVerifyError: There is no PyTorch that the emulator can work with.
        CopyError: The project cannot be copied.
    """
    release = torch_release()
    major, minor = (int(part) for part in release.split(".")[:2])
    version = TorchVersion(major, minor)
    apis, types = apis_to_watch(catalogue, version), types_to_watch(catalogue, version)
    with tempfile.TemporaryDirectory(prefix="npulens_", ignore_cleanup_errors=True) as name:
        work = Path(os.path.realpath(name))
        folder = request.folder
        applied = Applied(0, ())
        if not request.in_place:
            folder = work / "project" / request.folder.name
            copy_project(request.folder, folder)
            if request.migration is not None:
                log_folder = work / "log"
                applied = request.migration.apply(
                    request.folder, folder, request.task.script, log_folder, is_cancelled
                )
        arguments = _arguments(request)
        task = replace(request.task, arguments=arguments.run)
        migrated = _run(request, task, "npu", folder, work, (apis, types), is_cancelled)
        comparison = None
        if request.tolerance is not None:
            again = work / "original" / request.folder.name
            copy_project(request.folder, again)
            original = _run(request, request.task, "cpu", again, work, ({}, {}), is_cancelled)
            comparison = compare(original, migrated, request.tolerance)
            if comparison.divergence is not None:
                run_again = _run_without(request, task, work, (apis, types), is_cancelled)
                codes = deciding_rules(applied.codes, run_again, original, request.tolerance)
                comparison = replace(comparison, deciding=codes)
        changes = Changes(applied.findings, arguments)
        return _verification(request, catalogue, migrated, folder, changes, comparison, apis)


def _run_without(
    request: Request, task: Task, work: Path, watched: Watched, is_cancelled: IsCancelled
) -> Callable[[str], RunResult]:
    """What migrates the project without the fixes of a rule, and runs it."""

    def run_again(code: str) -> RunResult:
        assert request.migration is not None
        own = f"without_{code}"
        folder = work / own / request.folder.name
        copy_project(request.folder, folder)
        migration, log_folder = request.migration.without(code), work / f"log_{own}"
        migration.apply(request.folder, folder, request.task.script, log_folder, is_cancelled)
        return _run(request, task, "npu", folder, work, watched, is_cancelled, own)

    return run_again


def _arguments(request: Request) -> RunArguments:
    given, migration = request.task.arguments, request.migration
    if migration is None:
        return RunArguments(given)
    return migrated_arguments(given, migration.configuration, migration.catalogue)


def _run(
    request: Request,
    task: Task,
    device: Device,
    folder: Path,
    work: Path,
    watched: Watched,
    is_cancelled: IsCancelled,
    name: str = "",
) -> RunResult:
    own = work / f"run_{name or device}"
    own.mkdir()
    compares = request.tolerance is not None
    watching = Watching(request.seed, compares, *watched, request.offline, request.with_shapes)
    return run(
        task,
        device,
        folder,
        request.folder,
        own,
        request.limits,
        watching,
        is_cancelled,
    )


def _verification(
    request: Request,
    catalogue: Catalogue,
    result: RunResult,
    folder: Path,
    changes: Changes,
    comparison: Comparison | None,
    apis: dict[str, str],
) -> Verification:
    tests = test_results(result)
    verdict = judge(result, apis) if tests is None else judge_tests(tests, result, apis)
    if (
        verdict.outcome in GOOD | LIMITED
        and comparison is not None
        and comparison.divergence is not None
    ):
        verdict = Verdict(Outcome.DIVERGED)
    if verdict.outcome in (Outcome.ERROR, Outcome.NPU_ERROR) and comparison is not None:
        verdict = replace(verdict, outcome=_beside_original(verdict, comparison))
    events = device_events(result)
    agreement = None
    if request.with_agreement:
        files = sorted({file for report in result.reports for file in report["files"]})
        agreement = agree(folder, files, catalogue, events)
    lines = OriginalLines(request.folder, folder)
    trace = _TraceLines(folder, lines)
    main = result.main
    return Verification(
        verdict=_verdict_of_user(verdict, lines, folder),
        style=None if request.migration is None else request.migration.configuration.style,
        fixed=changes.fixed,
        arguments=changes.arguments,
        steps=result.steps,
        tests=None if tests is None else _tests_of_user(tests, lines, folder),
        losses=tuple(main["losses"]) if main is not None else (),
        cuda_calls=_sites_of_user(cuda_calls(result), lines),
        apis=_sites_of_user([*api_uses(result, apis), *type_uses(result)], lines),
        events=_sites_of_user(events, lines),
        comparison=comparison,
        agreement=None if agreement is None else _places_of_user(agreement, lines),
        script=request.task.script,
        unreached=_unreached(request.task, verdict, result, folder, lines),
        output=tuple(trace.of_user(line) for line in result.output),
        shapes=_shapes_of_user(result, lines),
        documents=lines.documents,
    )


def _beside_original(verdict: Verdict, comparison: Comparison) -> Outcome:
    """How a run that stopped in an error ended, by what the original has done on the CPU."""
    if comparison.problem == verdict.detail:
        return Outcome.FAILS_ALIKE
    return Outcome.NPU_ERROR if comparison.original_ends else verdict.outcome


def _shapes_of_user(result: RunResult, lines: OriginalLines) -> tuple[SeenShapes, ...]:
    """The shapes of names in all processes, in the lines of the user's files."""
    found: dict[tuple[str, int, str], dict[tuple[int, ...], None]] = {}
    for report in result.reports:
        for path, line, name, shapes in report["shapes"]:
            place = lines.place(path, line)
            known = found.setdefault((path, place.line, name), {})
            known.update(dict.fromkeys(map(tuple, shapes)))
    return tuple(SeenShapes(*place, tuple(shapes)) for place, shapes in found.items())


def _unreached(
    task: Task, verdict: Verdict, result: RunResult, folder: Path, lines: OriginalLines
) -> tuple[Unreached, ...] | None:
    """What a script did not come to that a limit has ended, by the lines of the user's file."""
    script = task.script
    if verdict.outcome not in LIMITED or script is None or task.notebook is not None:
        return None
    document = document_in(folder, script)
    if document is None:
        return None
    reached = {line for report in result.reports for line in report["lines"]}
    found = (
        Unreached(name, lines.place(script, first).line, lines.place(script, last).line)
        for name, first, last in unreached(document.text, reached)
    )
    return tuple(dict.fromkeys(found))


def _verdict_of_user(verdict: Verdict, lines: OriginalLines, folder: Path) -> Verdict:
    detail = verdict.detail.replace(f"{folder}{os.sep}", "")
    if verdict.path is None or verdict.line is None:
        return replace(verdict, detail=detail)
    place = lines.place(verdict.path, verdict.line)
    return replace(verdict, line=place.line, cell=place.cell, detail=detail)


def _tests_of_user(tests: TestResults, lines: OriginalLines, folder: Path) -> TestResults:
    failed = (
        replace(test, verdict=_verdict_of_user(test.verdict, lines, folder))
        for test in tests.failed
    )
    return replace(tests, failed=tuple(failed))


def _sites_of_user(sites: Sequence[Site], lines: OriginalLines) -> tuple[Site, ...]:
    places = [(site, lines.place(site.path, site.line)) for site in sites]
    return tuple(replace(site, line=place.line, cell=place.cell) for site, place in places)


def _places_of_user(places: Sequence[AgreedPlace], lines: OriginalLines) -> tuple[AgreedPlace, ...]:
    found = []
    for agreed in places:
        line, cell = lines.place(agreed.path, agreed.line)
        sites = _sites_of_user(agreed.sites, lines)
        found.append(replace(agreed, line=line, cell=cell, sites=sites))
    return tuple(found)


class _TraceLines:
    """Lines of tracebacks, which name files and lines of the copy."""

    def __init__(self, folder: Path, lines: OriginalLines) -> None:
        self._folder = f"{folder}{os.sep}"
        self._lines = lines
        self._place = re.compile(rf'File "{re.escape(self._folder)}([^"]+)", line (\d+)')

    def of_user(self, line: str) -> str:
        """The line with the place in the user's file."""
        return self._place.sub(self._original_place, line).replace(self._folder, "")

    def _original_place(self, match: re.Match[str]) -> str:
        line, cell = self._lines.place(match[1], int(match[2]))
        return f'File "{match[1]}", {"" if cell is None else f"cell {cell}, "}line {line}'
