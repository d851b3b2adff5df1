"""The documents that a client has open, each with its newest analysis."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder, get_capability
from pygls.uris import to_fs_path

from npulens.catalog.model import LANGUAGES, Language
from npulens.lsp.convert import ClientTerms, to_code_actions, to_position, to_text_changes
from npulens.lsp.engine import Analysis, Engine, OpenDocument, Task
from npulens.lsp.slots import LatestWins
from npulens.text.document import Document, PositionEncoding
from npulens.text.kinds import kind_by_language, kind_by_name

logger = logging.getLogger(__name__)


class Session:
    """What one client has told, and what it shall be told.

    Nothing is computed here: a change makes a new document and puts it into its slot, a code
    action is looked up.
    """

    def __init__(self, publish: Callable[[types.PublishDiagnosticsParams], None]) -> None:
        """Start without documents; `publish` sends diagnostics to the client."""
        self.was_shut_down = False
        self.terms = ClientTerms()
        self._publish = publish
        self._opened: dict[str, OpenDocument] = {}
        self._slots = LatestWins[str, Task, Analysis](Engine().run, self._deliver, self._failed)

    def shut_down(self) -> None:
        """Finish; nothing is published any more."""
        self.was_shut_down = True
        self._slots.stop()

    def open(self, item: types.TextDocumentItem) -> None:
        """Take in a document; one of a kind that npulens does not read is none of ours."""
        name = to_fs_path(item.uri) if item.uri.startswith("file:") else None
        path = Path(name) if name else None
        language = kind_by_name(name or "") or kind_by_language(item.language_id)
        if language is None:
            return
        document = Document(name or item.uri, item.text, item.version, language)
        self._opened[item.uri] = OpenDocument(item.uri, path, document)
        self._analyse(self._opened[item.uri])

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take in the next version of a document."""
        opened = self._opened.get(params.text_document.uri)
        if opened is not None:
            opened.document = opened.document.edited(
                tuple(to_text_changes(params.content_changes)),
                self.terms.encoding,
                params.text_document.version,
            )
            self._analyse(opened)

    def save(self, uri: str) -> None:
        """Look at a document again, with the configuration that it has now."""
        opened = self._opened.get(uri)
        if opened is not None:
            opened.configuration_is_due = True
            self._analyse(opened)

    def close(self, uri: str) -> None:
        """Forget a document and clear its diagnostics."""
        if self._opened.pop(uri, None) is not None:
            self._slots.forget(uri)
            self._publish(types.PublishDiagnosticsParams(uri, []))

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        """Quick fixes for the findings at a range, from the analysis of this very text.

        `None` if the text changes before its analysis is there.
        """
        uri = params.text_document.uri
        if not _wants_quick_fixes(params.context.only):
            return None
        analysis = await self._slots.latest(uri)
        if analysis is None:
            return None
        document, terms = analysis.document, analysis.terms
        start = document.offset_at(to_position(params.range.start), terms.encoding)
        end = document.offset_at(to_position(params.range.end), terms.encoding)
        return [
            action
            for finding, diagnostic in zip(analysis.findings, analysis.diagnostics, strict=True)
            if finding.span.start <= end and start <= finding.span.end
            for action in to_code_actions(finding, diagnostic, uri, document, terms)
        ]

    def _analyse(self, opened: OpenDocument) -> None:
        self._slots.submit(opened.uri, Task(opened, opened.document, self.terms))

    def _deliver(self, uri: str, analysis: Analysis) -> None:
        version = analysis.document.version
        self._publish(types.PublishDiagnosticsParams(uri, analysis.diagnostics, version))

    def _failed(self, uri: str, error: Exception) -> None:
        logger.error("The analysis of %s failed.", uri, exc_info=error)


def agreed_terms(params: types.InitializeParams) -> ClientTerms:
    """What the client offers, and what the user chose, when it connects."""
    capabilities = params.capabilities
    encoding = ServerCapabilitiesBuilder.choose_position_encoding(capabilities)
    options = params.initialization_options
    asked_for = options.get("language") if isinstance(options, dict) else None
    language = asked_for if asked_for in LANGUAGES else _spoken(params.locale)
    return ClientTerms(
        PositionEncoding(types.PositionEncodingKind(encoding).value),
        language,
        language_is_asked_for=asked_for in LANGUAGES,
        versioned_edits=bool(
            get_capability(capabilities, "workspace.workspace_edit.document_changes")
        ),
    )


def _spoken(locale: str | None) -> Language:
    return "zh" if locale is not None and locale.lower().startswith("zh") else "en"


def _wants_quick_fixes(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    quick_fix = types.CodeActionKind.QuickFix.value
    return only is None or any(kind in ("", quick_fix) for kind in only)
