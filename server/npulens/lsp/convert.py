"""What the engine says, in the types of the protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types

from npulens.catalog.model import Applicability, Finding, Fix, Language, Severity
from npulens.text.document import Document, PositionEncoding, TextChange
from npulens.text.spans import Position, Span

SOURCE = "npulens"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}


@dataclass(frozen=True, slots=True)
class ClientTerms:
    """What was agreed with the client when it connected.

    Attributes:
        encoding: The unit of columns.
        language: The language of messages and titles.
        language_is_asked_for: The user chose it, so that a project's own choice does not count.
        versioned_edits: The client takes edits that name the version of the text they are for.
        related_places: The client shows other places that belong to a diagnostic.
    """

    encoding: PositionEncoding = PositionEncoding.UTF16
    language: Language = "en"
    language_is_asked_for: bool = False
    versioned_edits: bool = False
    related_places: bool = False

    def in_project(self, language: Language | None) -> "ClientTerms":
        """The terms for the documents of a project that may have a language of its own."""
        if language is None or self.language_is_asked_for:
            return self
        return replace(self, language=language)


def to_range(span: Span, document: Document, encoding: PositionEncoding) -> types.Range:
    """A span of the document as lines and columns."""
    start = document.position_at(span.start, encoding)
    end = document.position_at(span.end, encoding)
    return types.Range(types.Position(*start), types.Position(*end))


def to_position(position: types.Position) -> Position:
    """A place as the engine takes it, in the units of the client."""
    return Position(position.line, position.character)


def to_diagnostic(
    finding: Finding, uri: str, document: Document, terms: ClientTerms
) -> types.Diagnostic:
    """A finding as the editor shows it."""
    url = finding.rule.url
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uri, to_range(part.span, document, terms.encoding)),
            part.text.in_language(terms.language),
        )
        for part in finding.related
    ]
    return types.Diagnostic(
        range=to_range(finding.span, document, terms.encoding),
        severity=_SEVERITIES[finding.effective_severity],
        code=finding.rule.code,
        code_description=None if url is None else types.CodeDescription(url),
        source=SOURCE,
        message=finding.message(terms.language),
        related_information=related if related and terms.related_places else None,
    )


def to_text_changes(
    changes: Sequence[types.TextDocumentContentChangeEvent],
) -> Iterator[TextChange]:
    """The editor's changes as the document takes them."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = to_position(change.range.start), to_position(change.range.end)
            yield TextChange(start, end, change.text)
        else:
            yield TextChange(None, None, change.text)


def to_code_actions(
    finding: Finding,
    diagnostic: types.Diagnostic,
    uri: str,
    document: Document,
    terms: ClientTerms,
) -> Iterator[types.CodeAction]:
    """The fixes of a finding as quick fixes for `document`."""
    for place, fix in enumerate(finding.fixes):
        yield types.CodeAction(
            title=fix.title.in_language(terms.language),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            is_preferred=place == 0 and fix.applicability is Applicability.SAFE,
            edit=_to_workspace_edit(fix, uri, document, terms),
        )


def to_rewrite(fix: Fix, uri: str, document: Document, terms: ClientTerms) -> types.CodeAction:
    """A change that no finding asks for, on offer where the cursor is."""
    return types.CodeAction(
        title=fix.title.in_language(terms.language),
        kind=types.CodeActionKind.RefactorRewrite,
        edit=_to_workspace_edit(fix, uri, document, terms),
    )


def _to_workspace_edit(
    fix: Fix, uri: str, document: Document, terms: ClientTerms
) -> types.WorkspaceEdit:
    edits = [
        types.TextEdit(to_range(edit.span, document, terms.encoding), edit.replacement)
        for edit in fix.edits
    ]
    if not terms.versioned_edits:
        return types.WorkspaceEdit(changes={uri: edits})
    target = types.OptionalVersionedTextDocumentIdentifier(uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(target, edits)])
