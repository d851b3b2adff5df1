"""What files need to know of the disk, looked up for each folder of the workspace on its own."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from npulens.lsp.session.slots import IsSuperseded, LatestWins
from npulens.workspace.project.file_context import FileContext, ProjectContextProvider
from npulens.workspace.settings.catalogues import Catalogues
from npulens.workspace.settings.configuration import Settings


class Look(NamedTuple):
    """A question: what counts for a file.

    Attributes:
        path: The file, or `None` for a text that is not saved.
        folder: The folder of the workspace that it is in, or `None`.
        settings: What counts where the project says nothing.
    """

    path: Path | None
    folder: Path | None
    settings: Settings


_Deliver = Callable[[str, FileContext], None]
_Failed = Callable[[str, Exception], None]


class Looks:
    """Answers by the document that they are for.

    Each folder has a thread of its own: a project that takes long to read, or hangs on a disk that
    does not answer, keeps the files of others from nothing.
    """

    def __init__(self, deliver: _Deliver, failed: _Failed) -> None:
        """Set up without starting anything; both are called as `LatestWins` says."""
        self._deliver = deliver
        self._failed = failed
        self._catalogues = Catalogues()
        self._folders: dict[Path | None, _Folder] = {}
        self._of: dict[str, _Folder] = {}

    def submit(self, uri: str, look: Look) -> None:
        """Look up what counts for a document; earlier lookups for it are forgotten."""
        folder = self._folders.get(look.folder)
        if folder is None:
            folder = self._folders[look.folder] = _Folder(
                self._catalogues, self._deliver, self._failed
            )
        if self._of.get(uri, folder) is not folder:
            self.forget(uri)
        self._of[uri] = folder
        folder.slots.submit(uri, look)

    def forget(self, uri: str) -> None:
        """Deliver nothing more for a document."""
        if (folder := self._of.pop(uri, None)) is not None:
            folder.slots.forget(uri)

    async def latest(self, uri: str) -> FileContext | None:
        """What counts for a document, as soon as it is known."""
        folder = self._of.get(uri)
        return None if folder is None else await folder.slots.latest(uri)

    def read_again(self, *, rules: bool, projects: bool) -> None:
        """Read rule files, or other files of projects, again with the next look."""
        for folder in self._folders.values():
            folder.forgets_rules |= rules
            folder.forgets_projects |= projects

    def stop(self) -> None:
        """Deliver nothing more."""
        for folder in self._folders.values():
            folder.slots.stop()


class _Folder:
    """The looks in one folder of the workspace, and what was read there."""

    def __init__(self, catalogues: Catalogues, deliver: _Deliver, failed: _Failed) -> None:
        self.forgets_rules = self.forgets_projects = False
        self._lookout = ProjectContextProvider(catalogues)
        self.slots = LatestWins[str, Look, FileContext](self._look, deliver, failed)

    def _look(self, look: Look, is_superseded: IsSuperseded) -> FileContext | None:
        """Runs on the thread of the folder."""
        if self.forgets_rules:
            self.forgets_rules = False
            self._lookout.forget_rules()
        if self.forgets_projects:
            self.forgets_projects = False
            self._lookout.forget_projects()
        return None if is_superseded() else self._lookout.look(*look)
