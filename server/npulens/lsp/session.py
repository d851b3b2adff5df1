"""The documents that a client has open, each with its newest analysis."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder, get_capability
from pygls.uris import to_fs_path

from npulens.catalog.model import LANGUAGES, Language
from npulens.fixes.shim import SHIM_NAME, shim_rewrite
from npulens.lsp.convert import (
    ClientTerms,
    to_code_actions,
    to_position,
    to_rewrite,
    to_text_changes,
)
from npulens.lsp.engine import Analysis, Engine, OpenDocument, Task
from npulens.lsp.slots import LatestWins
from npulens.text.document import Document, PositionEncoding
from npulens.text.kinds import kind_by_language, kind_by_name

logger = logging.getLogger(__name__)

QUICK_FIX = types.CodeActionKind.QuickFix.value
REWRITE = types.CodeActionKind.RefactorRewrite.value


class Session:
    """What one client has told, and what it shall be told.

    Next to nothing is computed here: a change makes a new document and puts it into its slot, a
    code action is looked up.
    """

    def __init__(self, publish: Callable[[types.PublishDiagnosticsParams], None]) -> None:
        """Start without documents; `publish` sends diagnostics to the client."""
        self.was_shut_down = False
        self.terms = ClientTerms()
        self.folders: Sequence[Path] = ()
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
        opened = OpenDocument(item.uri, path, document, folder=self._folder(path))
        opened.mentions_shim = SHIM_NAME in item.text
        self._opened[item.uri] = opened
        self._analyse(opened)

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
            mentioned = opened.mentions_shim
            opened.mentions_shim = SHIM_NAME in opened.document.text
            # The files that a script imports run under the shim if it imports the shim.
            concerned = self._opened.values() if mentioned or opened.mentions_shim else [opened]
            for each in concerned:
                each.configuration_is_due = True
                self._analyse(each)

    def close(self, uri: str) -> None:
        """Forget a document and clear its diagnostics."""
        if self._opened.pop(uri, None) is not None:
            self._slots.forget(uri)
            self._publish(types.PublishDiagnosticsParams(uri, []))

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        """Quick fixes for the findings at a range, and what can be done about the shim there.

        They come from the analysis of this very text; `None` if it changes before that is there.
        """
        uri = params.text_document.uri
        wants_fixes, wants_rewrites = (
            _wants(kind, params.context.only) for kind in (QUICK_FIX, REWRITE)
        )
        if not (wants_fixes or wants_rewrites):
            return None
        analysis = await self._slots.latest(uri)
        if analysis is None:
            return None
        document, terms = analysis.document, analysis.terms
        start = document.offset_at(to_position(params.range.start), terms.encoding)
        end = document.offset_at(to_position(params.range.end), terms.encoding)
        actions = [
            action
            for finding, diagnostic in zip(analysis.findings, analysis.diagnostics, strict=True)
            if wants_fixes and finding.span.start <= end and start <= finding.span.end
            for action in to_code_actions(finding, diagnostic, uri, document, terms)
        ]
        rewrite = shim_rewrite(document.text, start, end) if wants_rewrites else None
        if rewrite is not None:
            actions.append(to_rewrite(rewrite, uri, document, terms))
        return actions

    def _folder(self, path: Path | None) -> Path | None:
        """The innermost folder of the workspace that a file is in."""
        around = [folder for folder in self.folders if path and path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

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
        related_places=bool(
            get_capability(capabilities, "text_document.publish_diagnostics.related_information")
        ),
    )


def _spoken(locale: str | None) -> Language:
    return "zh" if locale is not None and locale.lower().startswith("zh") else "en"


def _wants(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a kind of code actions, or one that it belongs to, is asked for."""
    if only is None:
        return True
    wanted = [k.value if isinstance(k, types.CodeActionKind) else k for k in only]
    return any(not w or kind == w or kind.startswith(f"{w}.") for w in wanted)


def workspace_folders(params: types.InitializeParams) -> list[Path]:
    """The folders that the client has open, without those that are no project."""
    uris = [folder.uri for folder in params.workspace_folders or ()]
    names = [to_fs_path(uri) for uri in uris or [params.root_uri or ""] if uri.startswith("file:")]
    folders = [Path(name) for name in names if name]
    return [f for f in folders if f not in (f.parent, Path("~").expanduser())]
