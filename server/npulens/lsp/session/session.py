"""The documents that a client has open, each with its newest analysis."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.uris import to_fs_path

from npulens.analysis import StatementCache
from npulens.catalog.project_model import ProjectFacts
from npulens.fixes.shim_edits import may_load_shim
from npulens.lsp.session.client_settings import ClientSettings
from npulens.lsp.session.convert import ClientTerms, to_text_changes
from npulens.lsp.session.engine import Analyser, Analysis, OpenDocument, Task
from npulens.lsp.session.project_lookups import Look, Looks
from npulens.lsp.session.run_diagnostics import RunDiagnostics
from npulens.lsp.session.slots import LatestWins
from npulens.lsp.session.views import Part, View
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_language, kind_by_name
from npulens.workspace.project.file_context import FileContext

logger = logging.getLogger(__name__)


class Client(Protocol):
    """What a session sends to the client without a request."""

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        """Show diagnostics."""

    def say(self, message: str) -> None:
        """Tell the user of a mistake that only the user can mend."""

    def refresh(self) -> None:
        """Let the client request again what has been answered before."""

    def refresh_shapes(self) -> None:
        """Let the client request again what is shown of shapes."""

    def trace(self, message: str) -> None:
        """Tell what was done, if somebody wants to follow that."""

    def rule_files_named(self) -> None:
        """A configuration names rule files that none has named before."""


class Session:
    """What one client has sent, and what it shall receive.

    Next to nothing is computed here: a change makes a new document and puts it into its slot.
    What a file needs to know of the disk is looked up on other threads, when it is opened or
    something changes on the disk, never for a change of a text.
    """

    def __init__(self, client: Client) -> None:
        """Start without documents."""
        self.was_shut_down = False
        self.terms = ClientTerms()
        self.folders: Sequence[Path] = ()
        self.settings: dict[Path | None, ClientSettings] = {}
        self.opened: dict[str, OpenDocument] = {}
        self.rule_files: frozenset[Path] = frozenset()
        self.runs = RunDiagnostics()
        self._client = client
        self._cells: dict[str, str] = {}
        self._reported: dict[str, str] = {}
        self._looks = Looks(self._looked, self._failed)
        analyser = Analyser()
        self._analyses = LatestWins[str, Task, Analysis](
            analyser.run, self._deliver, self._failed, analyser.complete
        )

    def shut_down(self) -> None:
        """Finish; nothing is published any more."""
        self.was_shut_down = True
        self._looks.stop()
        self._analyses.stop()

    # Documents

    def open(self, item: types.TextDocumentItem) -> None:
        """Take in a document; one of a kind that npulens does not read is none of ours."""
        path = file_path(item.uri)
        name = None if path is None else str(path)
        language = kind_by_name(name or "") or kind_by_language(item.language_id)
        if language is None or language is Kind.NOTEBOOK:  # its cells come as documents
            return
        document = Document(name or item.uri, item.text, item.version, language)
        self.show(item.uri, path, View.of_file(item.uri, document))

    def show(self, uri: str, path: Path | None, view: View) -> None:
        """Take in the first text of a file or notebook."""
        opened = OpenDocument(uri, path, view)
        opened.mentions_shim = may_load_shim(view.document.text)
        self._forget_parts(uri)
        self.opened[uri] = opened
        self._remember_parts(opened)
        self.look_again([opened])

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take in the next version of a document."""
        opened = self.opened.get(params.text_document.uri)
        if opened is not None:
            document = opened.view.document.edited(
                tuple(to_text_changes(params.content_changes)),
                self.terms.encoding,
                params.text_document.version,
            )
            self.update(opened, View.of_file(opened.uri, document))

    def update(self, opened: OpenDocument, view: View) -> None:
        """Take in the next text of a file or notebook."""
        self._clear(opened, {part.uri for part in view.parts})
        opened.view = view
        self._remember_parts(opened)
        self._analyse(opened)

    def save(self, uri: str) -> None:
        """Look at a document again, with what is on the disk now."""
        opened = self.opened.get(uri)
        if opened is not None:
            mentioned = opened.mentions_shim
            opened.mentions_shim = may_load_shim(opened.view.document.text)
            # The files that a script imports run under the shim if it imports the shim.
            concerns_all = mentioned or opened.mentions_shim
            opened.is_code_saved = opened.view.document.kind in (Kind.PYTHON, Kind.NATIVE)
            self.look_again(
                self.opened.values() if concerns_all else [opened], projects=opened.is_code_saved
            )

    def close(self, uri: str) -> None:
        """Forget a file or notebook and clear its diagnostics."""
        opened = self.opened.pop(uri, None)
        if opened is not None:
            self._looks.forget(uri)
            self._analyses.forget(uri)
            self._clear(opened, set())
            self._reported.pop(uri, None)
            opened.statements = StatementCache()

    def of_document(self, uri: str) -> OpenDocument | None:
        """What a document of the client belongs to: itself, or the notebook of a cell."""
        return self.opened.get(self._cells.get(uri, uri))

    async def analysis(self, uri: str) -> Analysis | None:
        """The analysis of the text that a document has now, as soon as it is there.

        `None` if the document is not open, or is changed in the meantime.
        """
        opened = self.of_document(uri)
        if opened is None:
            return None
        view = opened.view
        await self._looks.latest(opened.uri)
        if opened.view is not view:
            return None
        analysis = await self._analyses.latest(opened.uri)
        return analysis if analysis is not None and analysis.view is view else None

    async def with_names(self, analysis: Analysis) -> Analysis | None:
        """An analysis with the shapes of all names; `None` if its text is changed meanwhile."""
        uri = analysis.view.parts[0].uri
        whole = await self._analyses.completed(self._cells.get(uri, uri))
        return whole if whole is not None and whole.serial == analysis.serial else None

    def current_with_names(self, uri: str) -> Analysis | None:
        """The same for a document, if it is there already."""
        return self._analyses.finished_whole(self._cells.get(uri, uri))

    async def analysed_part(self, uri: str) -> tuple[Analysis, Part] | None:
        """The same with the part that the document is of what is analysed."""
        analysis = await self.analysis(uri)
        part = None if analysis is None else analysis.view.part_named(uri)
        return None if analysis is None or part is None else (analysis, part)

    def current(self, uri: str) -> Analysis | None:
        """The same, if it is there already."""
        return self._analyses.finished(self._cells.get(uri, uri))

    # What counts for them

    def folder_of(self, path: Path | None) -> Path | None:
        """The innermost folder of the workspace that a file is in."""
        around = [folder for folder in self.folders if path and path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

    def is_in_workspace(self, path: Path) -> bool:
        """Whether a file is in a folder of the workspace once all links are followed."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in self.folders)

    def settings_of(self, folder: Path | None) -> ClientSettings:
        """What the user has set for a folder of the workspace."""
        return self.settings.get(folder) or self.settings.get(None) or ClientSettings()

    def set_settings(self, settings: dict[Path | None, ClientSettings]) -> None:
        """From now on these count."""
        if settings != self.settings:
            self.settings = settings
            self.look_again(self.opened.values())
            self._client.refresh()

    def look_again(
        self, documents: Iterable[OpenDocument], *, rules: bool = False, projects: bool = False
    ) -> None:
        """Look up what counts for documents; what differs is analysed anew.

        Rule files, or other files of projects, are read again where they have changed.
        """
        self._looks.read_again(rules=rules, projects=projects)
        for opened in list(documents):
            folder = self.folder_of(opened.path)
            settings = self.settings_of(folder).project
            self._looks.submit(opened.uri, Look(opened.path, folder, settings))

    def _looked(self, uri: str, found: FileContext) -> None:
        opened = self.opened.get(uri)
        if opened is None:
            return
        self._notify(uri, None if found.problem is None else found.problem.en)
        if not self.rule_files.issuperset(found.configuration.extend_rules):
            self.rule_files |= frozenset(found.configuration.extend_rules)
            self._client.rule_files_named()
        before, opened.file_context = opened.file_context, found
        if not (found == before and self._is_analysed(opened)):
            self._analyse(opened)
        if opened.is_code_saved and before is not None and found.project != before.project:
            self.look_again(self._in_project(before.project))
        opened.is_code_saved = False

    def _in_project(self, project: ProjectFacts) -> list[OpenDocument]:
        """The documents that are still analysed with what was known of their project."""
        contexts = ((each, each.file_context) for each in self.opened.values())
        return [each for each, context in contexts if context and context.project == project]

    def _is_analysed(self, opened: OpenDocument) -> bool:
        """Whether the last analysis is of the text as it is, in the terms that the client needs.

        Saving changes nothing then, and what was offered before, such as actions, still holds.
        """
        analysis = self._analyses.finished(opened.uri)
        if analysis is None or analysis.view is not opened.view:
            return False
        wanted = analysis.file_context.configuration.language
        return analysis.terms == self._terms_for(opened).in_project(wanted)

    def _notify(self, uri: str, problem: str | None) -> None:
        """Say what is wrong with a configuration, once for all documents that it is for."""
        if problem is None:
            self._reported.pop(uri, None)
            return
        is_new = problem not in self._reported.values()
        self._reported[uri] = problem
        if is_new:
            logger.error("%s", problem)
            self._client.say(problem)

    # Analyses

    def _analyse(self, opened: OpenDocument) -> None:
        if opened.file_context is None:
            return  # when it is there, the newest text is analysed
        task = Task(opened, opened.view, opened.file_context, self._terms_for(opened))
        self._analyses.submit(opened.uri, task)

    def _terms_for(self, opened: OpenDocument) -> ClientTerms:
        """The terms of the client, in the language that the user requests in this folder."""
        return self.terms.speaking(self.settings_of(self.folder_of(opened.path)).language)

    def diagnostics(self, analysis: Analysis, uri: str) -> list[types.Diagnostic]:
        """The diagnostics of a part: those of the analysis, and those of the last run."""
        opened = self.of_document(uri)
        path = None if opened is None else opened.path
        seen = self.runs.of_part(path, analysis.view, uri, analysis.terms)
        return [*analysis.of_part(uri), *seen]

    def show_again(self) -> None:
        """Send diagnostics again that were sent without those of the last run."""
        for uri in self.opened:
            analysis = self._analyses.finished(uri)
            if analysis is not None:
                self._publish(analysis)

    def _publish(self, analysis: Analysis) -> None:
        if not self.terms.pulls:
            for part in analysis.view.parts:
                found = self.diagnostics(analysis, part.uri)
                self._client.publish(part.uri, found, part.document.version)

    def _deliver(self, uri: str, analysis: Analysis) -> None:
        self._publish(analysis)
        opened = self.opened[uri]
        before, opened.shapes_shown = opened.shapes_shown, analysis.shapes_shown
        if before is not None and before != analysis.shapes_shown:
            self._client.refresh_shapes()
        version = analysis.view.document.version
        self._client.trace(f"{uri}, version {version}: {len(analysis.findings)} findings")

    def _failed(self, uri: str, error: Exception) -> None:
        logger.error("The analysis of %s failed.", uri, exc_info=error)

    # Cells

    def _remember_parts(self, opened: OpenDocument) -> None:
        self._cells.update((p.uri, opened.uri) for p in opened.view.parts if p.uri != opened.uri)

    def _forget_parts(self, uri: str) -> None:
        opened = self.opened.get(uri)
        for part in () if opened is None else opened.view.parts:
            self._cells.pop(part.uri, None)

    def _clear(self, opened: OpenDocument, kept: set[str]) -> None:
        """Clear the diagnostics of those parts that are not kept."""
        for part in opened.view.parts:
            if part.uri not in kept:
                self._cells.pop(part.uri, None)
                if not self.terms.pulls:
                    self._client.publish(part.uri, [], None)


def file_path(uri: str) -> Path | None:
    """The file that a URI names, `None` if it names something else."""
    if not uri.lower().startswith("file:"):
        return None
    try:
        name = to_fs_path(uri)
    except ValueError:  # such as brackets that are no address
        return None
    return Path(name) if name and "\0" not in name else None


def workspace_folders(uris: Iterable[str]) -> Iterator[Path]:
    """The folders that the client has open, without those that are no project."""
    for uri in uris:
        path = file_path(uri)
        if path is not None and path not in (path.parent, Path("~").expanduser()):
            yield path
