"""Links from the codes of rules to the pages that explain them."""

import re
from collections.abc import Iterator

from lsprotocol import types

from npulens.checks.other_files.launch_files import comments_of
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.rule_pages import page_uri
from npulens.syntax.comments import suppressions
from npulens.syntax.strings import comments
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.workspace.settings.configuration import CONFIGURATION_FILES

_QUOTED = re.compile(r"[\"'](NPU\d{3})[\"']")
_WORD = re.compile(r"[\w-]+")


def codes_in(analysis: Analysis) -> Iterator[tuple[Span, str]]:
    """Where codes and names of rules are: in suppression comments, and in a configuration."""
    document = analysis.view.document
    text = document.text
    if document.path.endswith(CONFIGURATION_FILES):
        for quoted in _QUOTED.finditer(text):
            yield Span(*quoted.span(1)), quoted[1]
        return
    find = comments if document.kind is Kind.PYTHON else comments_of(document.kind)
    for comment in suppressions(text, find):
        for code in _WORD.finditer(text, *comment.span):
            yield Span(*code.span()), code[0]


def register(server: NpulensServer) -> None:
    """Answer requests for links."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def document_link(params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        uri = params.text_document.uri
        analysis = await session.analysis(uri)
        if analysis is None:
            return None
        links = []
        for span, code in codes_in(analysis):
            rule = analysis.file_context.catalogue.rule_named(code)
            page = None if rule is None else page_uri(rule, analysis.terms.language)
            place = analysis.view.locate(span, analysis.terms.encoding)
            if rule is not None and page is not None and place.part.uri == uri:
                links.append(types.DocumentLink(place.range, page, tooltip=rule.name))
        return links
