"""Symbolic shapes within lines, in functions where shapes depend on data or the host waits."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

from npulens.catalog.messages import message
from npulens.checks.segments.shape_answers import Hint
from npulens.lsp.requests.shape_paths import code_of, in_its_line
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.text.spans import Span

_LONGEST = 60
_MOST_SOURCES = 3


def hints(analysis: Analysis, uri: str, span: Span) -> Iterator[types.InlayHint]:
    """The hints for a span of a text, which is in the part with this name; without tooltips."""
    encoding = analysis.terms.encoding
    dynamic = message("editor.dynamic").in_language(analysis.terms.language)
    known = analysis.shapes.hints
    first = bisect_left(known, span.start, key=lambda hint: hint.span.end)
    for index, hint in enumerate(known[first:], first):
        if hint.span.end > span.end:
            return
        if not hint.is_informative:
            continue
        shape = hint.shape
        if len(shape) > _LONGEST:
            shape = f"{shape[:_LONGEST]}…"
        yield types.InlayHint(
            analysis.view.locate(hint.span, encoding).range.end,
            f": {shape} {dynamic}" if hint.is_dynamic else f": {shape}",
            types.InlayHintKind.Type,
            data={"uri": uri, "analysis": analysis.serial, "hint": index},
        )


def tooltip(analysis: Analysis, hint: Hint) -> str:
    """What a hint means, in Markdown."""
    language, view = analysis.terms.language, analysis.view
    parts = [message("editor.symbolic-shape").in_language(language)]
    if hint.is_dynamic:
        parts.append(message("editor.depends-on-data").in_language(language))
        for _, source in hint.sources[:_MOST_SOURCES]:
            code = code_of(view.document.text[slice(*source)])
            parts.append(f"- {in_its_line(code, source, view, language)}")
    return "\n\n".join(parts)


def register(server: NpulensServer) -> None:
    """Answer requests for hints."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=True))
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        uri = params.text_document.uri
        opened = session.of_document(uri)
        if opened is None or not session.settings_of(session.folder_of(opened.path)).inlay_hints:
            return None
        analysed = await session.analysed_part(uri)
        if analysed is None:
            return None
        analysis, part = analysed
        span = analysis.view.span_of(part, params.range, analysis.terms.encoding)
        found = [*hints(analysis, uri, span)]
        return found if _resolves(server) else [_explained(hint, analysis) for hint in found]

    @server.feature(types.INLAY_HINT_RESOLVE)
    def resolve(hint: types.InlayHint) -> types.InlayHint:
        data: Any = hint.data if isinstance(hint.data, dict) else {}
        uri = data.get("uri")
        analysis = session.current(uri) if isinstance(uri, str) else None
        is_of_it = analysis is not None and analysis.serial == data.get("analysis")
        return _explained(hint, analysis) if analysis is not None and is_of_it else hint


def _resolves(server: NpulensServer) -> bool:
    """Whether the client requests a tooltip when the user wants to see it."""
    support = get_capability(server.client_capabilities, "text_document.inlay_hint.resolve_support")
    return "tooltip" in getattr(support, "properties", ())


def _explained(hint: types.InlayHint, analysis: Analysis) -> types.InlayHint:
    index = hint.data["hint"] if isinstance(hint.data, dict) else None
    if isinstance(index, int) and 0 <= index < len(analysis.shapes.hints):
        text = tooltip(analysis, analysis.shapes.hints[index])
        hint.tooltip = types.MarkupContent(types.MarkupKind.Markdown, text)
    return hint
