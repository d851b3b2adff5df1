"""What the engine says, in the types of the protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder, get_capability

from npulens.catalog.model import Finding, Language, Severity
from npulens.catalog.rule_properties import Tag
from npulens.lsp.session.rule_pages import page_uri
from npulens.lsp.session.views import NotebookFile, View
from npulens.text.document import PositionEncoding, TextChange
from npulens.text.places import shown_place
from npulens.text.spans import Position
from npulens.workspace.settings.problems import is_problem

SOURCE = "npulens"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}
_TAGS = {
    Tag.UNNECESSARY: types.DiagnosticTag.Unnecessary,
    Tag.DEPRECATED: types.DiagnosticTag.Deprecated,
}


@dataclass(frozen=True, slots=True)
class ClientTerms:
    """What was agreed with the client when it connected.

    Attributes:
        encoding: The unit of columns.
        is_language_chosen: The user chose it, so that a project's own choice does not count.
        versioned_edits: The client takes edits that name the version of the text they are for.
        annotated_edits: It takes edits with a label, which it shows in a preview.
        edit_metadata: It wants to know what an edit is for.
        related_places: It shows other places that belong to a diagnostic.
        tags: The tags of diagnostics that it shows.
        pulls: It requests diagnostics, so that none are pushed.
        resolves_edits: It requests the edit of a code action when the user chooses that.
        shows_disabled: It shows code actions that cannot be had, with the reason.
    """

    encoding: PositionEncoding = PositionEncoding.UTF16
    language: Language = "en"
    is_language_chosen: bool = False
    versioned_edits: bool = False
    annotated_edits: bool = False
    edit_metadata: bool = False
    related_places: bool = False
    tags: frozenset[types.DiagnosticTag] = frozenset()
    pulls: bool = False
    resolves_edits: bool = False
    shows_disabled: bool = False

    def speaking(self, language: Language | None) -> "ClientTerms":
        """The terms for a user who requested a language, or for none."""
        if language is None:
            return self
        return replace(self, language=language, is_language_chosen=True)

    def in_project(self, language: Language | None) -> "ClientTerms":
        """The terms for the documents of a project that may have a language of its own."""
        if language is None or self.is_language_chosen:
            return self
        return replace(self, language=language)


def agreed_terms(params: types.InitializeParams) -> ClientTerms:
    """What the client offers when it connects."""
    offered = params.capabilities

    def has(capability: str) -> bool:
        return bool(get_capability(offered, capability))

    encoding = ServerCapabilitiesBuilder.choose_position_encoding(offered)
    tags = get_capability(offered, "text_document.publish_diagnostics.tag_support")
    diagnostics = get_capability(offered, "text_document.diagnostic")
    resolvable = get_capability(offered, "text_document.code_action.resolve_support")
    has_zh_locale = (params.locale or "").lower().startswith("zh")
    return ClientTerms(
        PositionEncoding(types.PositionEncodingKind(encoding).value),
        "zh" if has_zh_locale else "en",
        versioned_edits=has("workspace.workspace_edit.document_changes"),
        annotated_edits=has("workspace.workspace_edit.change_annotation_support"),
        edit_metadata=has("workspace.workspace_edit.metadata_support"),
        related_places=has("text_document.publish_diagnostics.related_information")
        or bool(getattr(diagnostics, "related_information", False)),
        tags=_known_tags(tags) | _known_tags(getattr(diagnostics, "tag_support", None)),
        pulls=diagnostics is not None,
        resolves_edits=has("text_document.code_action.data_support")
        and "edit" in getattr(resolvable, "properties", ()),
        shows_disabled=has("text_document.code_action.disabled_support"),
    )


def _known_tags(support: object) -> frozenset[types.DiagnosticTag]:
    offered = getattr(support, "value_set", ())
    return frozenset(tag for tag in types.DiagnosticTag if tag in offered)


def to_diagnostic(finding: Finding, view: View, terms: ClientTerms) -> types.Diagnostic:
    """A finding as the editor shows it."""
    page = page_uri(finding.rule, terms.language)
    related = []
    for part in finding.related:
        place = view.locate(part.span, terms.encoding)
        related.append(
            types.DiagnosticRelatedInformation(
                types.Location(place.part.uri, place.range), part.text.in_language(terms.language)
            )
        )
    tags = [_TAGS[tag] for tag in finding.rule.tags]
    fix = finding.fixes[0].applicability.value if finding.fixes else None
    return types.Diagnostic(
        range=view.locate(finding.span, terms.encoding).range,
        severity=_SEVERITIES[finding.effective_severity],
        code=finding.rule.code,
        code_description=None if page is None else types.CodeDescription(page),
        source=SOURCE,
        message=_message(finding, view, terms.language),
        tags=[tag for tag in tags if tag in terms.tags] or None,
        related_information=related if related and terms.related_places else None,
        data={"rule": finding.rule.name, "fix": fix, "isProblem": is_problem(finding)},
    )


def _message(finding: Finding, view: View, language: Language) -> str:
    """What a finding says; of a notebook that is not open, it names the cell, too."""
    message = finding.message(language)
    if isinstance(view, NotebookFile):
        return f"{shown_place(view.document, finding.span.start)}: {message}"
    return message


def to_text_changes(
    changes: Sequence[types.TextDocumentContentChangeEvent],
) -> Iterator[TextChange]:
    """The editor's changes as the document takes them."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            yield TextChange(
                Position(start.line, start.character),
                Position(end.line, end.character),
                change.text,
            )
        else:
            yield TextChange(None, None, change.text)
