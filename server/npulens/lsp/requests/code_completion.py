"""Words that npulens itself gives a meaning to, and what the NPU has under its own names."""

import re
from collections.abc import Iterator

from lsprotocol import types

from npulens.catalog.facts import npu_names
from npulens.catalog.model import Language
from npulens.catalog.tables import Catalogue
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.workspace.settings.configuration import CONFIGURATION_FILES

_IN_LIST = re.compile(r"#\s*npulens:\s*ignore(?:-file)?\s*\[[^\]]*?([\w-]*)$")
_IN_COMMENT = re.compile(r"#\s*(npulens(?::\s*[\w-]*)?|npu\w*)$")
_IN_SETTING = re.compile(r"(?:select|ignore)\s*=\s*\[[^\]]*[\"']([\w-]*)$", re.DOTALL)
_NPU_NAME = re.compile(r"\b(torch\.npu\.|torch_npu\.)([\w.]*)$")
_SUPPRESSIONS = ("npulens: ignore", "npulens: ignore[]", "npulens: ignore-file[]")
_LOOK_BACK = 2_000
"""Characters before the cursor that a list of rules in a configuration may have."""


def completions(analysis: Analysis, offset: int) -> Iterator[types.CompletionItem]:
    """What may be written at a place."""
    document = analysis.view.document
    line_start = document.line_starts[document.position_at(offset).line]
    before = document.text[line_start:offset]
    catalogue, language = analysis.file_context.catalogue, analysis.terms.language
    if _IN_LIST.search(before):
        yield from _rules(catalogue, language)
    elif comment := _IN_COMMENT.search(before):
        for text in _SUPPRESSIONS:
            word = Span(line_start + comment.start(1), offset)
            place = analysis.view.locate(word, analysis.terms.encoding).range
            yield types.CompletionItem(
                text,
                kind=types.CompletionItemKind.Keyword,
                text_edit=types.TextEdit(place, text),
            )
    elif document.path.endswith(CONFIGURATION_FILES):
        if _IN_SETTING.search(document.text[max(offset - _LOOK_BACK, 0) : offset]):
            yield from _rules(catalogue, language)
    elif document.kind is Kind.PYTHON and (name := _NPU_NAME.search(before)):
        yield from _npu_names(name[1], name[2], catalogue)


def _rules(catalogue: Catalogue, language: Language) -> Iterator[types.CompletionItem]:
    for rule in catalogue.rules.values():
        text = rule.explanation.in_language(language)
        yield types.CompletionItem(
            rule.code,
            kind=types.CompletionItemKind.EnumMember,
            detail=rule.name,
            filter_text=f"{rule.code} {rule.name}",
            insert_text=rule.code,
            documentation=types.MarkupContent(types.MarkupKind.Markdown, text),
        )


def _npu_names(root: str, path: str, catalogue: Catalogue) -> Iterator[types.CompletionItem]:
    """Names below the one that is written, each with what it takes the place of."""
    start = root + path[: path.rfind(".") + 1]
    seen: dict[str, str | None] = {}
    for name in npu_names(catalogue):
        if name.startswith(start):
            rest = name[len(start) :]
            head = rest.partition(".")[0]
            seen.setdefault(head, catalogue.counterparts.get(name) if head == rest else None)
    for head, counterpart in seen.items():
        yield types.CompletionItem(
            head, kind=types.CompletionItemKind.Reference, detail=counterpart
        )


def register(server: NpulensServer) -> None:
    """Answer completions."""
    session = server.session

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION,
        types.CompletionOptions(trigger_characters=[".", "[", '"', "#", ":"]),
    )
    async def completion(params: types.CompletionParams) -> list[types.CompletionItem] | None:
        analysed = await session.analysed_part(params.text_document.uri)
        if analysed is None:
            return None
        analysis, part = analysed
        offset = analysis.view.offset_of(part, params.position, analysis.terms.encoding)
        return [*completions(analysis, offset)]
