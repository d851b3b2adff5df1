"""Diagnostics for clients that request them: of one document, and of the whole workspace."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from npulens.catalog.messages import message
from npulens.lsp.session.client_settings import ClientSettings
from npulens.lsp.session.convert import SOURCE, ClientTerms, to_diagnostic
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.progress import Progress
from npulens.lsp.session.views import view_on_disk
from npulens.text.document import Document
from npulens.workspace.runs.overview import FileState

_FILES_AT_ONCE = 50
_DIAGNOSTICS_AT_ONCE = 200
"""To write so many down takes the loop 10 ms."""
_WORTH_PROGRESS = 20
"""For a check of fewer files no progress is shown that nobody requested."""
_THIS_PROCESS = token_hex(4)

_Report = types.WorkspaceDocumentDiagnosticReport


def result_id(found: Sequence[types.Diagnostic]) -> str:
    """The same for the same diagnostics, whenever they are found."""
    return blake2b(repr(found).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def register(server: NpulensServer) -> None:
    """Answer requests for diagnostics."""
    session = server.session

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(
            inter_file_dependencies=False,
            workspace_diagnostics=True,
            identifier=SOURCE,
            work_done_progress=True,
        ),
    )
    async def document_diagnostic(
        params: types.DocumentDiagnosticParams,
    ) -> types.DocumentDiagnosticReport:
        uri = params.text_document.uri
        if session.of_document(uri) is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        analysis = await session.analysis(uri)
        if analysis is None:
            raise _RetryError
        found = session.diagnostics(analysis, uri)
        identity = result_id(found)
        if identity == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(identity)
        return types.RelatedFullDocumentDiagnosticReport(found, result_id=identity)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def workspace_diagnostic(
        params: types.WorkspaceDiagnosticParams,
    ) -> types.WorkspaceDiagnosticReport:
        sent: list[_Report] = []
        async for portion in _WorkspaceRequest(server, params).portions():
            # Open documents are requested on their own, with the text that the editor has.
            # Those of a notebook that has been opened are of its cells, and none of its file.
            kept = [
                _nothing_in(each.uri) if each.uri in session.opened else each
                for each in portion
                if each.uri not in session.opened or each.uri.endswith(".ipynb")
            ]
            if params.partial_result_token is None:
                sent += kept
            elif kept:
                partial = types.WorkspaceDiagnosticReportPartialResult(kept)
                server.protocol.notify(
                    types.PROGRESS, types.ProgressParams(params.partial_result_token, partial)
                )
        return types.WorkspaceDiagnosticReport(sent)


def _nothing_in(uri: str) -> _Report:
    return types.WorkspaceFullDocumentDiagnosticReport(uri, [])


class _Folder(NamedTuple):
    path: Path
    settings: ClientSettings
    terms: ClientTerms


class _WorkspaceRequest:
    """One request for the whole workspace; the work is done on threads and in processes."""

    def __init__(self, server: NpulensServer, params: types.WorkspaceDiagnosticParams) -> None:
        session = server.session
        title = message("editor.check-workspace").in_language(session.terms.language)
        self._overview = server.overview
        self._progress = Progress(server, title, params.work_done_token)
        self._is_progress_requested = params.work_done_token is not None
        self._known = {each.uri: each.value for each in params.previous_result_ids}
        self._is_cancelled = Event()
        self._to_check = self._checked = 0
        self._folders = [
            _Folder(folder, settings, session.terms.speaking(settings.language))
            for folder in session.folders
            for settings in [session.settings_of(folder)]
        ]

    async def portions(self) -> AsyncIterator[list[_Report]]:
        """The reports, few at a time; with progress, if there is something to wait for."""
        portions = self._portions()
        try:
            while (portion := await asyncio.to_thread(next, portions, None)) is not None:
                if self._is_progress_requested or self._to_check >= _WORTH_PROGRESS:
                    await self._progress.begin()
                    done, total = self._checked, max(self._to_check, 1)
                    self._progress.go_on(f"{done}/{self._to_check}", 100 * done // total)
                yield portion
        finally:
            self._is_cancelled.set()
            self._progress.end()

    def _portions(self) -> Iterator[list[_Report]]:
        """Runs on a thread; a portion may be empty."""
        portion: list[_Report] = []
        collected = checked = 0
        for state, terms in self._states():
            report = self._report(state, terms)
            if report is not None:
                portion.append(report)
                collected += len(getattr(report, "items", ()))
            checked += 1
            if checked >= _FILES_AT_ONCE or collected >= _DIAGNOSTICS_AT_ONCE:
                yield portion
                portion, collected, checked = [], 0, 0
        yield portion

    def _states(self) -> Iterator[tuple[FileState, ClientTerms]]:
        for folder in self._folders:
            path, settings = folder.path, folder.settings
            states = self._overview.states(
                path, settings.project, self._is_cancelled.is_set, self._begin, keeps=settings.cache
            )
            for state in states:
                if self._to_check:  # what has to be checked comes last
                    self._checked += 1
                yield state, folder.terms

    def _begin(self, to_check: int) -> None:
        self._to_check += to_check

    def _report(self, state: FileState, terms: ClientTerms) -> _Report | None:
        """The report on a file in which something is, or was at the last request."""
        uri = state.path.as_uri()
        before = self._known.get(uri)
        if before is None and not state.has_findings:
            return None
        terms = terms.in_project(state.file_context.configuration.language)
        identity = f"{_THIS_PROCESS}.{state.serial}.{terms.language}"
        if before == identity:
            return types.WorkspaceUnchangedDocumentDiagnosticReport(uri, identity)
        document, findings = state.read()
        view = view_on_disk(uri, document or Document(uri, ""))
        found = [to_diagnostic(finding, view, terms) for finding in findings]
        return types.WorkspaceFullDocumentDiagnosticReport(uri, found, result_id=identity)


class _RetryError(JsonRpcException):
    """The text has changed while it was analysed."""

    CODE = types.LSPErrorCodes.ServerCancelled.value
    MESSAGE = "The document has changed."

    def __init__(self) -> None:
        super().__init__(data={"retriggerRequest": True})
