"""Symbolic shapes within lines: of all names, or only where shapes depend on data."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

from npulens.catalog.messages import message
from npulens.checks.segments.shape_answers import Hint
from npulens.lsp.requests.shape_paths import code_of, in_its_line
from npulens.lsp.session.client_settings import ShownShapes
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.run_diagnostics import Shapes, ShapesByName, name_of
from npulens.text.spans import Span

_LONGEST = 60
_MOST_SOURCES = 3
_MOST_SHAPES = 2


def hints(
    analysis: Analysis, uri: str, span: Span, seen: ShapesByName
) -> Iterator[types.InlayHint]:
    """The hints for a span of a text, without tooltips.

    Args:
        analysis: That of the text.
        uri: The part of it that the span is in.
        span: Where hints are requested.
        seen: The shapes of the last run.
    """
    encoding = analysis.terms.encoding
    dynamic = message("editor.dynamic").in_language(analysis.terms.language)
    known = analysis.shapes.hints
    document = analysis.view.document
    first = bisect_left(known, span.start, key=lambda hint: hint.span.end)
    for index, hint in enumerate(known[first:], first):
        if hint.span.end > span.end:
            return
        sizes = sizes_of(seen.get(name_of(document, hint), ()))
        if not (hint.is_informative or (sizes and hint.shape)):
            continue
        shape = hint.shape
        if len(shape) > _LONGEST:
            shape = f"{shape[:_LONGEST]}…"
        shape += f" = {sizes}" if sizes else ""
        yield types.InlayHint(
            analysis.view.locate(hint.span, encoding).range.end,
            f": {shape} {dynamic}" if hint.is_dynamic else f": {shape}",
            types.InlayHintKind.Type,
            data={"uri": uri, "analysis": analysis.serial, "hint": index, "all": analysis.is_whole},
        )


def of_run(analysis: Analysis, span: Span, seen: ShapesByName) -> Iterator[types.InlayHint]:
    """The hints for names that a run alone knows the shapes of."""
    if not seen:
        return
    document = analysis.view.document
    first, last = (bisect_right(document.line_starts, offset) for offset in span)
    shown = {name_of(document, hint) for hint in analysis.shapes.hints if hint.shape}
    for (line, name), shapes in seen.items():
        if not first <= line <= last or (line, name) in shown:
            continue
        found = re.search(rf"\b{re.escape(name)}\b", document.line_text(line - 1))
        start = document.line_starts[line - 1] + (0 if found is None else found.start())
        if found is not None and span.start <= start <= span.end:
            place = Span(start, start + len(name))
            position = analysis.view.locate(place, analysis.terms.encoding).range.end
            yield types.InlayHint(position, f": {sizes_of(shapes)}", types.InlayHintKind.Type)


def sizes_of(shapes: Shapes) -> str:
    """The shapes of a name in a run; an ellipsis stands for further ones."""
    shown = [str(list(shape)) for shape in shapes[:_MOST_SHAPES]]
    return ", ".join([*shown, "…"] if len(shapes) > _MOST_SHAPES else shown)


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
        if opened is None:
            return None
        shown = session.settings_of(session.folder_of(opened.path)).inlay_hints
        analysed = None if shown is ShownShapes.OFF else await session.analysed_part(uri)
        if analysed is None:
            return None
        analysis, part = analysed
        if shown is ShownShapes.ALL:
            whole = await session.with_names(analysis)
            if whole is None:
                return None
            analysis = whole
        span = analysis.view.span_of(part, params.range, analysis.terms.encoding)
        seen = session.runs.shapes_of(opened.path, analysis.view)
        found = [*hints(analysis, uri, span, seen)]
        found += of_run(analysis, span, seen)
        return found if _resolves(server) else [_explained(hint, analysis) for hint in found]

    @server.feature(types.INLAY_HINT_RESOLVE)
    def resolve(hint: types.InlayHint) -> types.InlayHint:
        data: Any = hint.data if isinstance(hint.data, dict) else {}
        uri = data.get("uri")
        analysis = None
        if isinstance(uri, str):
            is_all = bool(data.get("all"))
            analysis = session.current_with_names(uri) if is_all else session.current(uri)
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
