"""Migrating the files of a tree, in a copy or where they are."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from npulens.catalog.messages import LocalizedError, message
from npulens.catalog.model import Applicability, Finding, Fix, MigrationStyle, Shim
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.tables import Catalogue
from npulens.fixes.apply import fix_text
from npulens.fixes.starting_shim import start_with_shim
from npulens.syntax.cells import python_of_notebook
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.verdicts.conditions import Known
from npulens.workspace.files.copying import (
    copy_tree,
    finish_folders,
    inventory,
    require_unchanged,
)
from npulens.workspace.files.discovery import Discovery, discover_for
from npulens.workspace.files.folders import LOG_FOLDER
from npulens.workspace.files.git import GitTrees
from npulens.workspace.files.locking import Lock
from npulens.workspace.files.not_read import NotRead
from npulens.workspace.files.staging import put_in_place, require_place, staging_folder
from npulens.workspace.files.writing import write_whole
from npulens.workspace.fixing.change_log import ChangeLog, relative_path
from npulens.workspace.fixing.file_fixes import FixedFile, fix_safely, fix_unsafely
from npulens.workspace.fixing.in_place import clean_places, write_fixed
from npulens.workspace.fixing.rewriting_files import rewrite_file
from npulens.workspace.index.contents import Contents
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.migrating.distribution import Distribution, FixLater, distribute_entry
from npulens.workspace.project.project_facts import project_facts
from npulens.workspace.project.shim import ShimFinder
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.once import Once
from npulens.workspace.runs.processes import in_processes
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration, absolute

_MOST_ROUNDS = 20
"""What counts for a file may change with others; of real projects none needed a third round."""


class MigrationNeverEndsError(LocalizedError):
    """What is changed in some files leads to further changes in others without end."""


class Observer(Protocol):
    """Gets the progress of a migration."""

    def begin(self, total: int) -> None:
        """Some files are to be gone through."""

    def advance(self) -> None:
        """One more is done."""


@dataclass(frozen=True)
class Request:
    """What is wanted.

    Attributes:
        applicability: `unsafe` applies fixes too that have to be read afterwards.
        distribution: The script to make train in several processes, or `None`.
        jobs: How many processes to use, or `None`.
        log_folder: Where the log goes, or `None` for the tree.
        original: The folder of which `source` is a copy without its history, or `None`.
        started: The script that is known to be started, below `source`, or `None`.
    """

    source: Path
    configuration: Configuration
    catalogue: Catalogue
    applicability: Applicability
    distribution: Distribution | None = None
    jobs: int | None = None
    log_folder: Path | None = None
    original: Path | None = None
    started: Path | None = None


def migrate_copy(
    request: Request,
    destination: Path,
    observer: Observer,
    write_log: Callable[[ChangeLog, Path], None],
) -> ChangeLog:
    """Make a migrated copy of a folder. It is there as a whole, or not at all.

    Raises:
        PlaceError: The copy cannot be there.
        LockedError: Another run makes it.
        TreeChangedError: The source changed meanwhile.
        DistributionError: A script cannot be made to train in several processes.
        OSError: Something cannot be read or written.
    """
    source = request.source
    require_place(source, destination)
    with staging_folder(destination) as folder:
        root, tree = _places(request, folder, destination)
        tree.mkdir(parents=True)
        found = inventory(source)
        observer.begin(len(found.files))
        for _ in copy_tree(source, tree, found):
            observer.advance()
        not_read = _not_read(request)
        log = ChangeLog(files=len(found.files), left_out=found.left_out, not_read=not_read)
        configuration = request.configuration
        if configuration.source is not None:
            configuration = replace(configuration, source=root / configuration.source.name)
        copy = replace(request, source=tree, configuration=configuration, original=source)
        _migrate(copy, log, observer, _put)
        log_folder = request.log_folder or tree / LOG_FOLDER
        log_folder.mkdir(exist_ok=True)
        write_log(log, log_folder)
        require_unchanged(source, found)
        finish_folders(source, tree, found)
        put_in_place(tree, destination)
    return log


def migrate_in_place(
    request: Request,
    trees: GitTrees | None,
    observer: Observer,
    write_log: Callable[[ChangeLog, Path], None],
) -> ChangeLog:
    """Migrate the files of a folder where they are; each is written as a whole.

    `trees` are the git trees that could take it back, or `None` if nobody has to.

    Raises:
        LockedError: Another run does the same.
        DistributionError: A script cannot be made to train in several processes.
        OSError: The log cannot be written, or the folder not be read.
    """
    log = ChangeLog(not_read=_not_read(request))
    with Lock(request.source / ".npulens-migrating"):
        folder = request.log_folder or _free_folder(request.source / LOG_FOLDER)
        clean_places([request.source / "x", *files_of(request)])
        folder.mkdir(exist_ok=True)  # what could not be logged is not begun
        is_done = False
        try:
            _migrate(request, log, observer, lambda fixed: write_fixed(fixed, trees))
            is_done = True
        finally:  # also after Ctrl-C the log shows what was done
            if is_done or log.changed:
                write_log(log, folder)
            else:
                folder.rmdir()
    return log


def _free_folder(folder: Path) -> Path:
    """A new folder for a log; earlier ones stay."""
    number = 1
    while (found := folder if number == 1 else folder / str(number)).exists():
        number += 1
    return found


def files_of(request: Request) -> list[Path]:
    """The files of a folder that a migration reads."""
    return _discovered(request).files


def _not_read(request: Request) -> list[NotRead]:
    """What of the folder of a user is not looked at, by its paths in it."""
    found = _discovered(request).not_read()
    return [each._replace(path=relative_path(each.path, request.source)) for each in found]


def _discovered(request: Request) -> Discovery:
    source = [str(request.source)]
    return discover_for(request.configuration, source, original=request.original)


def _places(request: Request, folder: Path, destination: Path) -> tuple[Path, Path]:
    """Where the configuration counts as lying in a staging folder, and the root of the tree.

    Its patterns fit there as they do in the source, also if it lies above.
    """
    tree = folder / destination.name
    if request.configuration.source is None:
        return tree, tree
    source = os.path.realpath(request.source)
    above = os.path.realpath(request.configuration.root)
    inside, below = os.path.relpath(above, source), os.path.relpath(source, above)
    if not inside.startswith(os.pardir):
        return tree / inside, tree
    return folder, folder / below if not below.startswith(os.pardir) else tree


_Write = Callable[[FixedFile], FileReport]


def _migrate(request: Request, log: ChangeLog, observer: Observer, write: _Write) -> None:
    """Migrate the files of a tree."""
    root = Path(os.path.realpath(request.source))
    log.files = log.files or len(files_of(request))
    if request.distribution is not None:
        known = Known(request.catalogue.conditions, request.configuration.target.torch_version)
        distribute_entry(request.distribution, root, log, write, _fix_later(request), known)
    found = _discovered(request)
    files = found.files
    for folder, problem in found.problems.items():
        if folder != str(request.source):  # reported where there is nothing to read
            log.problems[relative_path(os.path.realpath(folder), root)] = problem
    if request.configuration.style is MigrationStyle.RUNTIME_SHIM:
        _start_with_shim(files, root, request.started, log, write)
    earlier = dict(log.problems)
    work = fix_unsafely if request.applicability is Applicability.UNSAFE else fix_safely
    around: tuple[ProjectFacts, Mapping[str, Shim]] | None = None
    memo = FactMemo()
    for _ in range(_MOST_ROUNDS):
        before, around = around, _around(request, files, memo)
        if around == before:
            break
        checker = Checker(request.catalogue, request.configuration, *around, folder=request.source)
        log.forget_left()
        log.problems = dict(earlier)
        once = Once()
        observer.begin(len(files))
        for fixed in in_processes(work, checker, files, request.jobs):
            observer.advance()
            _keep(fixed, once.report(write(fixed)), root, log)
    else:
        raise MigrationNeverEndsError(message("error.migration-never-ends", rounds=_MOST_ROUNDS))
    log.sort()


def _fix_later(request: Request) -> FixLater | None:
    """What fixing will make of a script; under the shim, calls of CUDA are right as they are."""
    if request.configuration.style is MigrationStyle.RUNTIME_SHIM:
        return None
    around = _around(request, files_of(request), FactMemo())
    checker = Checker(request.catalogue, request.configuration, *around, folder=request.source)

    def fix_later(path: Path, text: str) -> tuple[str, Sequence[Finding]]:
        def analyze(text: str) -> Sequence[Finding]:
            return checker.findings(Document(str(path), text))

        fixed = fix_text(text, analyze, request.applicability)
        return fixed.text, analyze(fixed.text)

    return fix_later


def _around(
    request: Request, files: list[Path], memo: FactMemo
) -> tuple[ProjectFacts, Mapping[str, Shim]]:
    """What counts for the files besides themselves."""
    contents = Contents()
    full = [absolute(file) for file in files]
    folders = [absolute(request.source)]
    facts = project_facts(full, folders, request.catalogue, contents, memo)
    finder = ShimFinder(contents)
    configuration = request.configuration
    if request.original is None:
        return facts, finder.states_of_project(configuration, files, request.source)
    # In a copy there is nothing but the tree.
    is_inside = absolute(request.source).is_relative_to(absolute(configuration.root))
    has_root = configuration.source is not None and is_inside
    root = configuration.root if has_root else request.source
    is_wanted = configuration.style is MigrationStyle.RUNTIME_SHIM
    return facts, finder.states(files, root, is_wanted=is_wanted)


def _keep(fixed: FixedFile, report: FileReport, root: Path, log: ChangeLog) -> None:
    path = relative_path(os.path.realpath(report.path), root)
    if report.problem is None and fixed.after != fixed.before:
        log.add_changes(path, fixed)
    log.add_left(path, report)


def _put(fixed: FixedFile) -> FileReport:
    """Write a file of a copy that nobody else knows yet."""
    if fixed.after != fixed.before:
        path = Path(os.path.realpath(fixed.report.path))
        write_whole(path, fixed.after, stat.S_IMODE(path.stat().st_mode))
    return fixed.report


def _start_with_shim(
    files: list[Path], root: Path, started: Path | None, log: ChangeLog, write: _Write
) -> None:
    """Turn `transfer_to_npu` on in the scripts with which a program starts."""
    python = [file for file in files if kind_by_name(file.name) is Kind.PYTHON]
    for path in ShimFinder().scripts_without_shim(python, root, started):
        rewrite_file(path, start_with_shim, root, log, write)
    if started is not None and kind_by_name(started.name) is Kind.NOTEBOOK:
        rewrite_file(started, _notebook_with_shim, root, log, write)


def _notebook_with_shim(text: str) -> Fix | None:
    return start_with_shim(python_of_notebook(text))
