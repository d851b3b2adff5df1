"""Diagnostics for clients that ask for them: of one document, and of the whole workspace."""

import asyncio
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Event
from typing import NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from npulens.lsp.convert import SOURCE, ClientTerms, to_diagnostic
from npulens.lsp.server import NpulensServer
from npulens.lsp.settings import ClientSettings
from npulens.lsp.views import View
from npulens.workspace.overview import Overview

_REPORTS_AT_ONCE = 50


def result_id(found: Sequence[types.Diagnostic]) -> str:
    """The same for the same diagnostics, whenever they are found."""
    return blake2b(repr(found).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def register(server: NpulensServer) -> None:
    """Answer who asks for diagnostics."""
    session = server.session
    overview = server.overview

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(
            inter_file_dependencies=False, workspace_diagnostics=True, identifier=SOURCE
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
            raise _AskAgainError
        found = session.diagnostics(analysis, uri)
        identity = result_id(found)
        if identity == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(identity)
        return types.RelatedFullDocumentDiagnosticReport(found, result_id=identity)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def workspace_diagnostic(
        params: types.WorkspaceDiagnosticParams,
    ) -> types.WorkspaceDiagnosticReport:
        known = {each.uri: each.value for each in params.previous_result_ids}
        cancelled = Event()
        folders = [
            _Folder(folder, settings, session.terms.speaking(settings.language))
            for folder in session.folders
            for settings in [session.settings_of(folder)]
        ]
        reports = _reports(overview, folders, known, cancelled)
        sent: list[types.WorkspaceDocumentDiagnosticReport] = []
        try:
            while portion := await asyncio.to_thread(
                lambda: list(islice(reports, _REPORTS_AT_ONCE))
            ):
                # Open documents are asked for on their own, with the text that the editor has.
                kept = [each for each in portion if each.uri not in session.opened]
                if params.partial_result_token is None:
                    sent += kept
                elif kept:
                    partial = types.WorkspaceDiagnosticReportPartialResult(kept)
                    server.protocol.notify(
                        types.PROGRESS, types.ProgressParams(params.partial_result_token, partial)
                    )
        finally:
            cancelled.set()
        return types.WorkspaceDiagnosticReport(sent)


class _Folder(NamedTuple):
    path: Path
    settings: ClientSettings
    terms: ClientTerms


def _reports(
    overview: Overview,
    folders: Sequence[_Folder],
    known: dict[str, str],
    cancelled: Event,
) -> Iterator[types.WorkspaceDocumentDiagnosticReport]:
    """One report for each file in which something is, or was when last asked; runs on a thread."""
    for folder in folders:
        for state in overview.states(folder.path, folder.settings.project, cancelled.is_set):
            uri = state.path.as_uri()
            found: list[types.Diagnostic] = []
            if state.document is not None:
                view = View.of_file(uri, state.document)
                terms = folder.terms.in_project(state.surroundings.configuration.language)
                found = [to_diagnostic(finding, view, terms) for finding in state.findings]
            identity = result_id(found)
            if known.get(uri) == identity:
                yield types.WorkspaceUnchangedDocumentDiagnosticReport(uri, identity)
            elif found or uri in known:
                yield types.WorkspaceFullDocumentDiagnosticReport(uri, found, result_id=identity)


class _AskAgainError(JsonRpcException):
    """The text has changed while it was analysed."""

    CODE = types.LSPErrorCodes.ServerCancelled.value
    MESSAGE = "The document has changed."

    def __init__(self) -> None:
        super().__init__(data={"retriggerRequest": True})
