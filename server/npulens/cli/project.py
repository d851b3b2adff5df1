"""The files that a command is about, and what checks them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npulens.cli.options import Settings
from npulens.cli.refusals import common_folder, refusals

if TYPE_CHECKING:
    from npulens.catalog.tables import Catalogue
    from npulens.workspace.files.not_read import NotRead
    from npulens.workspace.guiding.project_guide import Guide
    from npulens.workspace.project.reached_files import ReachedFiles
    from npulens.workspace.runs.cache import FindingCache
    from npulens.workspace.runs.file_report import FileReport
    from npulens.workspace.runs.run import Checker


class Project(NamedTuple):
    """What is to be checked.

    Attributes:
        files: The files, in a fixed order.
        problems: A report for each path that cannot be used.
        cache: What it knows from earlier runs, or `None`.
        not_read: What there is besides the files that npulens could read, and why it is not.
    """

    files: "Sequence[Path]"
    problems: "Sequence[FileReport]"
    checker: "Checker"
    cache: "FindingCache | None"
    not_read: "list[NotRead]"


def find_project(
    paths: Sequence[str], chosen: Settings, use_cache: bool, force_exclude: bool = False
) -> Project:
    """The files at and below the paths."""
    from npulens.workspace.runs.garbage import collect_seldom

    collect_seldom()
    from npulens.workspace.files.discovery import discover_for
    from npulens.workspace.index.contents import Contents
    from npulens.workspace.project.extent import whole_projects
    from npulens.workspace.project.project_facts import project_facts
    from npulens.workspace.project.shim import ShimFinder
    from npulens.workspace.runs.cache import FactCache, FindingCache
    from npulens.workspace.runs.file_report import FileReport
    from npulens.workspace.runs.run import Checker

    configuration, catalogue = chosen
    found = discover_for(configuration, paths, force_exclude)
    known = FactCache(configuration.root, catalogue, configuration) if use_cache else None
    memo = None if known is None else known.memo
    contents = Contents()
    files, folders = whole_projects(found, configuration)
    facts = project_facts(files, folders, catalogue, contents, memo)
    folder = common_folder([str(each) for each in folders] or paths)
    shims = ShimFinder(contents).states_of_project(configuration, files, folder)
    cache = None
    if known is not None:
        known.save()
        cache = FindingCache(configuration.root, catalogue, configuration, facts)
    checker = Checker(catalogue, configuration, facts, shims, cache, _folder(paths))
    problems = [FileReport(path, problem=problem) for path, problem in found.problems.items()]
    return Project(found.files, problems, checker, cache, found.not_read())


def _folder(paths: "Sequence[str]") -> Path:
    """The project's folder where no file marks one: what was named, or what files are named in."""
    here, named = Path.cwd(), common_folder(paths)
    if any(map(os.path.isdir, paths)):  # unlike a method of `Path` it raises for no name
        return named if named.is_dir() else named.parent
    return here if named.is_relative_to(here) else named.parent


def reached_files(project: Project, catalogue: "Catalogue", root: Path) -> "ReachedFiles":
    """What the files of a project import of each other, by absolute paths."""
    from npulens.workspace.index.fact_memo import FactMemo
    from npulens.workspace.project.reached_files import ReachedFiles
    from npulens.workspace.settings.configuration import absolute

    libraries = {name.partition(".")[0] for name in catalogue.libraries}
    return ReachedFiles(map(absolute, project.files), absolute(root), libraries, FactMemo())


def guide_of_project(
    root: Path,
    reports: "Iterable[FileReport]",
    reached: "ReachedFiles",
    writing: Path | None = None,
) -> "Guide":
    """The guide of a project that was checked.

    Raises:
        Refusal: Its state file cannot be used.
    """
    from npulens.workspace.guiding.guide_evidence import Checked
    from npulens.workspace.guiding.project_guide import guide_of
    from npulens.workspace.settings.configuration import absolute

    files = [
        Checked(absolute(Path(each.path)), each.document, each.findings)
        for each in reports
        if each.path
    ]
    with refusals():
        return guide_of(absolute(root), files, reached, writing=writing)


def check_project(project: Project, jobs: int | None) -> "Iterator[FileReport]":
    """The reports of all files; what is new in them goes to the cache, also after Ctrl-C."""
    from npulens.workspace.runs.once import Once

    yield from project.problems
    yield from map(Once().report, _reports(project, jobs))


def _reports(project: Project, jobs: int | None) -> "Iterator[FileReport]":
    from npulens.workspace.runs.processes import in_processes
    from npulens.workspace.runs.run import Checker

    try:
        for report in in_processes(Checker.check_file, project.checker, project.files, jobs):
            if project.cache is not None:
                project.cache.add(report)
            yield report
    finally:
        if project.cache is not None:
            project.cache.save()
