"""The findings of all files of a folder, kept as long as the files stay the same."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from npulens.catalog.model import Finding, Shim
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.background import check_in_background
from npulens.workspace.configuration import Settings, absolute
from npulens.workspace.files.discovery import discover
from npulens.workspace.project.shim import ShimFinder
from npulens.workspace.project.surroundings import Lookout, Surroundings

_Stamp = tuple[int, int]
"""Time and size of a file, which change when it does."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What is found in a file.

    Attributes:
        path: The file.
        findings: In the order of their places.
        document: The text they are in, `None` where there are none.
        surroundings: What counted for it.
        problem: Why it could not be checked, or `None`.
    """

    path: Path
    findings: tuple[Finding, ...]
    document: Document | None
    surroundings: Surroundings
    problem: str | None = None


class Overview:
    """Checks folders; asked again, it checks the files that have changed since."""

    def __init__(self) -> None:
        self._lookout = Lookout()
        self._finders: dict[Path, ShimFinder] = {}
        self._known: dict[Path, dict[Path, tuple[_Stamp, FileState]]] = {}
        self._surroundings: dict[Path, Surroundings] = {}
        self._lock = Lock()

    def states(
        self, folder: Path, settings: Settings, is_cancelled: Callable[[], bool]
    ) -> Iterator[FileState]:
        """The state of each file of a folder that npulens reads, those that changed last.

        Ends early once it is cancelled; what was checked until then is kept.
        """
        folder = absolute(folder)
        with self._lock:
            known, stamps, surroundings = self._refreshed(folder, settings)
            configuration = surroundings.configuration
            files = list(stamps)
            changed = [f for f in files if f not in known or known[f][0] != stamps[f]]
            kept = [known[f][1] for f in files if f in known and known[f][0] == stamps[f]]
            finder = self._finders.setdefault(folder, ShimFinder())
            shims = finder.states_of_project(configuration, files, folder) if changed else {}
        yield from kept
        catalogue, project = surroundings.catalogue, surroundings.project
        reports = check_in_background(
            changed, catalogue, configuration, project, shims, is_cancelled
        )
        for file, report in zip(changed, reports, strict=False):
            shim = shims.get(str(absolute(file)), Shim.ABSENT)
            around = replace(surroundings, shim=shim)
            state = FileState(file, report.findings, report.document, around, report.problem)
            known[file] = (stamps[file], state)
            yield state

    def _refreshed(
        self, folder: Path, settings: Settings
    ) -> tuple[dict[Path, tuple[_Stamp, FileState]], dict[Path, _Stamp], Surroundings]:
        """What is known of a folder, its files as they are now, and what counts for them."""
        inside = folder / "__init__.py"
        surroundings = self._lookout.look(inside, folder, settings)
        configuration = surroundings.configuration
        files = discover(
            [str(folder)],
            configuration.exclude,
            configuration.root,
            configuration.respect_gitignore,
        ).files
        # Editors show the cells of a notebook, and not the file that holds them.
        files = [file for file in files if kind_by_name(str(file)) is not Kind.NOTEBOOK]
        stamps = {file: stamp for file in files if (stamp := _stamp(file)) is not None}
        known = self._known.setdefault(folder, {})
        if known and stamps != {file: stamp for file, (stamp, _) in known.items()}:
            self._lookout.forget_projects()
            surroundings = self._lookout.look(inside, folder, settings)
        if surroundings != self._surroundings.get(folder):
            self._surroundings[folder] = surroundings
            known = self._known[folder] = {}
        for gone in known.keys() - stamps.keys():
            del known[gone]
        return known, stamps, surroundings

    def forget(self) -> None:
        """Check all files again when next asked."""
        with self._lock:
            self._known.clear()
            self._surroundings.clear()
            self._lookout.forget_rules()
            self._lookout.forget_projects()


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
