"""The findings of all files of a folder, kept as long as the files stay the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Lock
from time import monotonic

from npulens.catalog.model import Finding, Shim
from npulens.text.document import Document
from npulens.workspace.files.discovery import discover_for
from npulens.workspace.index.contents import Stamp, stamp
from npulens.workspace.project.file_context import FileContext, ProjectContextProvider
from npulens.workspace.project.shim import ShimFinder
from npulens.workspace.runs.background import check_in_background
from npulens.workspace.runs.packed_report import PackedReport
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Settings, absolute

_TRUSTED_FOR = 30.0
"""Seconds for which files are believed to be as they were, if changes are reported."""

_serials = count(1)


@dataclass(frozen=True, slots=True)
class FileState:
    """What is found in a file; small, since there may be thousands.

    Attributes:
        file_context: What counted for it.
        serial: Its number, which no other state has.
    """

    path: Path
    file_context: FileContext
    report: PackedReport
    serial: int

    @property
    def has_findings(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.report.findings)

    def read(self) -> tuple[Document | None, tuple[Finding, ...]]:
        """The text of the file and the findings in the order of their places; both may be none."""
        return self.report.unpacked(self.path, self.file_context.catalogue.rules)


@dataclass(slots=True)
class _Folder:
    """What is known of a folder.

    Attributes:
        stamps: Its files as they were when last looked at.
        looked: When that was, and how many changes had been reported then.
        known: The state of each file, and the stamp for which it holds.
    """

    file_context: FileContext
    settings: Settings
    stamps: dict[Path, Stamp]
    looked: tuple[float, int]
    known: dict[Path, tuple[Stamp, FileState]]


class Overview:
    """Checks folders; called again, it checks the files that have changed since.

    Attributes:
        is_notified: Somebody calls `files_changed`, so that it need not look at all files each
            time.
    """

    def __init__(self) -> None:
        self.is_notified = False
        self._changes = 0
        self._lookout = ProjectContextProvider()
        self._finders: dict[Path, ShimFinder] = {}
        self._folders: dict[Path, _Folder] = {}
        self._lock = Lock()

    def states(
        self,
        folder: Path,
        settings: Settings,
        is_cancelled: Callable[[], bool],
        begin: Callable[[int], None] = lambda _: None,
        *,
        keeps: bool = True,
    ) -> Iterator[FileState]:
        """The state of each file of a folder that npulens reads, those that changed last.

        Ends early once it is cancelled; what was checked until then is kept.

        Args:
            folder: The folder.
            settings: What counts where the project says nothing.
            is_cancelled: Whether nobody wants more.
            begin: Told how many files have to be checked.
            keeps: Whether `.npulens_cache` is read and written, where there are many.
        """
        folder = absolute(folder)
        with self._lock:
            found = self._refreshed(folder, settings)
            stamps, known = found.stamps, found.known
            changed = [f for f in stamps if f not in known or known[f][0] != stamps[f]]
            kept = [known[f][1] for f in stamps if f in known and known[f][0] == stamps[f]]
            shims = self._shims(folder, found) if changed else {}
        yield from kept
        if changed:
            begin(len(changed))
            yield from self._checked(found, changed, shims, is_cancelled, keeps)

    def _checked(
        self,
        folder: _Folder,
        changed: Sequence[Path],
        shims: Mapping[str, Shim],
        is_cancelled: Callable[[], bool],
        keeps: bool,
    ) -> Iterator[FileState]:
        around, stamps, known = folder.file_context, folder.stamps, folder.known
        by_shim = {shim: replace(around, shim=shim) for shim in Shim}
        root = Path(around.project.root) if around.project.root else None
        facts = around.catalogue, around.configuration, around.project
        checker = Checker(*facts, shims, folder=root)
        reports = check_in_background(changed, checker, is_cancelled, keeps=keeps)
        for file, report in zip(changed, reports, strict=False):
            file_context = by_shim[shims.get(str(absolute(file)), Shim.ABSENT)]
            state = FileState(file, file_context, report, next(_serials))
            with self._lock:
                known[file] = (stamps[file], state)
            yield state

    def _shims(self, path: Path, folder: _Folder) -> Mapping[str, Shim]:
        finder = self._finders.setdefault(path, ShimFinder())
        configuration = folder.file_context.configuration
        return finder.states_of_project(configuration, folder.stamps, path)

    def _refreshed(self, path: Path, settings: Settings) -> _Folder:
        """A folder with its files as they are now, without what does not hold any more."""
        before = self._folders.get(path)
        looked = monotonic(), self._changes
        if before is not None and before.settings == settings and self._is_current(before):
            return before
        inside = path / "__init__.py"
        file_context = self._lookout.look(inside, path, settings)
        stamps = _stamps(path, file_context)
        if before is not None and stamps != before.stamps:
            self._lookout.forget_projects()
            file_context = self._lookout.look(inside, path, settings)
        known: dict[Path, tuple[Stamp, FileState]] = {}
        if before is not None and before.file_context == file_context:
            known = before.known
            for gone in known.keys() - stamps.keys():
                del known[gone]
        folder = _Folder(file_context, settings, stamps, looked, known)
        self._folders[path] = folder
        return folder

    def _is_current(self, folder: _Folder) -> bool:
        looked, changes = folder.looked
        return self.is_notified and changes == self._changes and monotonic() < looked + _TRUSTED_FOR

    def files_changed(self) -> None:
        """Look at the files again when next called."""
        self._changes += 1

    def forget(self) -> None:
        """Check all files again when next called."""
        with self._lock:
            self._folders.clear()
            self._lookout.forget_rules()
            self._lookout.forget_projects()


def _stamps(folder: Path, file_context: FileContext) -> dict[Path, Stamp]:
    files = discover_for(file_context.configuration, [str(folder)]).files
    return {file: found for file in files if (found := stamp(file)) is not None}
