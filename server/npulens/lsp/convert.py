"""What the engine says, in the types of the protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder, get_capability

from npulens.catalog.model import Applicability, Edit, Finding, Fix, Language, Severity
from npulens.lsp.views import View
from npulens.text.document import PositionEncoding, TextChange
from npulens.text.spans import Position, Span

SOURCE = "npulens"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}
_TAGS = {
    "unused-suppression": types.DiagnosticTag.Unnecessary,
    "cuda-backend-switch": types.DiagnosticTag.Unnecessary,
    "cuda-amp": types.DiagnosticTag.Deprecated,
    "apex-amp": types.DiagnosticTag.Deprecated,
}
"""By the name of the rule: code without effect, and interfaces that PyTorch has given up."""
_CONFIRM = "unsafe"


@dataclass(frozen=True, slots=True)
class ClientTerms:
    """What was agreed with the client when it connected.

    Attributes:
        encoding: The unit of columns.
        language: The language of messages and titles.
        language_is_asked_for: The user chose it, so that a project's own choice does not count.
        versioned_edits: The client takes edits that name the version of the text they are for.
        annotated_edits: It takes edits that ask the user to confirm them.
        related_places: It shows other places that belong to a diagnostic.
        tags: The tags of diagnostics that it shows.
        pulls: It asks for diagnostics, so that none are pushed.
        resolves_edits: It asks for the edit of a code action when the user chooses that.
        shows_disabled: It shows code actions that cannot be had, with the reason.
    """

    encoding: PositionEncoding = PositionEncoding.UTF16
    language: Language = "en"
    language_is_asked_for: bool = False
    versioned_edits: bool = False
    annotated_edits: bool = False
    related_places: bool = False
    tags: frozenset[types.DiagnosticTag] = frozenset()
    pulls: bool = False
    resolves_edits: bool = False
    shows_disabled: bool = False

    def speaking(self, language: Language | None) -> "ClientTerms":
        """The terms for a user who asked for a language, or for none."""
        if language is None:
            return self
        return replace(self, language=language, language_is_asked_for=True)

    def in_project(self, language: Language | None) -> "ClientTerms":
        """The terms for the documents of a project that may have a language of its own."""
        if language is None or self.language_is_asked_for:
            return self
        return replace(self, language=language)


def agreed_terms(params: types.InitializeParams) -> ClientTerms:
    """What the client offers when it connects."""
    offered = params.capabilities
    encoding = ServerCapabilitiesBuilder.choose_position_encoding(offered)
    tags = get_capability(offered, "text_document.publish_diagnostics.tag_support")
    diagnostics = get_capability(offered, "text_document.diagnostic")
    resolvable = get_capability(offered, "text_document.code_action.resolve_support")
    keeps_data = get_capability(offered, "text_document.code_action.data_support")
    has_zh_locale = (params.locale or "").lower().startswith("zh")
    return ClientTerms(
        PositionEncoding(types.PositionEncodingKind(encoding).value),
        "zh" if has_zh_locale else "en",
        versioned_edits=bool(get_capability(offered, "workspace.workspace_edit.document_changes")),
        annotated_edits=get_capability(
            offered, "workspace.workspace_edit.change_annotation_support"
        )
        is not None,
        related_places=bool(
            get_capability(offered, "text_document.publish_diagnostics.related_information")
            or getattr(diagnostics, "related_information", False)
        ),
        tags=_known_tags(tags) | _known_tags(getattr(diagnostics, "tag_support", None)),
        pulls=diagnostics is not None,
        resolves_edits=bool(keeps_data) and "edit" in getattr(resolvable, "properties", ()),
        shows_disabled=bool(get_capability(offered, "text_document.code_action.disabled_support")),
    )


def _known_tags(support: object) -> frozenset[types.DiagnosticTag]:
    offered = getattr(support, "value_set", ())
    return frozenset(tag for tag in types.DiagnosticTag if tag in offered)


def to_diagnostic(finding: Finding, view: View, terms: ClientTerms) -> types.Diagnostic:
    """A finding as the editor shows it."""
    url = finding.rule.url
    related = []
    for part in finding.related:
        place = view.locate(part.span, terms.encoding)
        related.append(
            types.DiagnosticRelatedInformation(
                types.Location(place.part.uri, place.range), part.text.in_language(terms.language)
            )
        )
    tag = _TAGS.get(finding.rule.name)
    fix = finding.fixes[0].applicability.value if finding.fixes else None
    return types.Diagnostic(
        range=view.locate(finding.span, terms.encoding).range,
        severity=_SEVERITIES[finding.effective_severity],
        code=finding.rule.code,
        code_description=None if url is None else types.CodeDescription(url),
        source=SOURCE,
        message=finding.message(terms.language),
        tags=[tag] if tag is not None and tag in terms.tags else None,
        related_information=related if related and terms.related_places else None,
        data={"rule": finding.rule.name, "fix": fix},
    )


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


def to_workspace_edit(
    edits: Sequence[Edit], view: View, terms: ClientTerms, confirm: str | None = None
) -> types.WorkspaceEdit:
    """Edits of the text that is analysed, as edits of the client's documents.

    Args:
        edits: The edits, none of which overlap.
        view: What they are for.
        terms: What the client takes.
        confirm: Why the user has to confirm them, or `None`.
    """
    by_part: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        moved = _in_its_part(edit, view)
        place = view.locate(moved.span, terms.encoding)
        by_part.setdefault(place.part.uri, []).append(
            types.TextEdit(place.range, moved.replacement)
        )
    return workspace_edit(
        {uri: (_version(view, uri), found) for uri, found in by_part.items()}, terms, confirm
    )


def workspace_edit(
    changes: dict[str, tuple[int | None, list[types.TextEdit]]],
    terms: ClientTerms,
    confirm: str | None = None,
) -> types.WorkspaceEdit:
    """Changes of documents, by name and with the version that they are for, as the client can."""
    if not terms.versioned_edits:
        return types.WorkspaceEdit(changes={uri: found for uri, (_, found) in changes.items()})
    asks = confirm is not None and terms.annotated_edits
    document_changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri, version),
            [types.AnnotatedTextEdit(_CONFIRM, e.range, e.new_text) for e in found]
            if asks
            else [*found],
        )
        for uri, (version, found) in changes.items()
    ]
    annotation = types.ChangeAnnotation(confirm or "", needs_confirmation=True)
    return types.WorkspaceEdit(
        document_changes=[*document_changes],
        change_annotations={_CONFIRM: annotation} if asks else None,
    )


def _version(view: View, uri: str) -> int | None:
    part = view.part_named(uri)
    return None if part is None else part.document.version


def _in_its_part(edit: Edit, view: View) -> Edit:
    """A whole line that would be put before a later cell goes to the end of the one before it."""
    start, end = edit.span
    part = view.part_of(start)
    if start == end == part.start and part is not view.parts[0]:
        line = edit.replacement
        if line.endswith("\n"):
            return Edit(Span(start - 1, start - 1), f"\n{line[:-1]}")
    return edit


def needs_confirmation(fix: Fix) -> bool:
    """Whether a fix has to be read before it is applied."""
    return fix.applicability is not Applicability.SAFE
