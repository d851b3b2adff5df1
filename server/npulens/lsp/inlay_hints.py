"""Hints within lines.

What they say is found below, in `shapes/`; `hints` is the place where that comes in.
"""

from collections.abc import Iterator

from lsprotocol import types

from npulens.lsp.engine import Analysis
from npulens.lsp.server import NpulensServer
from npulens.text.spans import Span


def hints(analysis: Analysis, span: Span) -> Iterator[types.InlayHint]:
    """The hints for a part of a text; there is nothing yet that finds any."""
    yield from ()


def register(server: NpulensServer) -> None:
    """Answer who asks for hints."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        uri = params.text_document.uri
        opened = session.of_document(uri)
        if opened is None or not session.settings_of(session.folder_of(opened.path)).inlay_hints:
            return None
        analysis = await session.analysis(uri)
        part = None if analysis is None else analysis.view.part_named(uri)
        if analysis is None or part is None:
            return None
        span = analysis.view.span_of(part, params.range, analysis.terms.encoding)
        return [*hints(analysis, span)]
