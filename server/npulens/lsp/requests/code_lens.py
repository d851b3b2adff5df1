"""Code lenses: how far the migration of a file is, what hurts in functions, and their shapes."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from lsprotocol import types

from npulens.catalog.messages import message, message_of, plural
from npulens.catalog.model import Language
from npulens.lsp.requests.commands import MIGRATE_FILE, RANK_SHAPES
from npulens.lsp.session.engine import Analysis, OpenDocument
from npulens.lsp.session.language_server import NpulensServer
from npulens.shapes.ranking.findings import reached
from npulens.shapes.ranking.hotspots import Ranked
from npulens.shapes.ranking.scoring import REPORTED
from npulens.text.spans import Span
from npulens.workspace.settings.configuration import is_selected
from npulens.workspace.settings.problems import counts_of

_LONGEST = 120
_FIRST_LINE = types.Range(types.Position(0, 0), types.Position(0, 0))


def state_of(analysis: Analysis, language: Language) -> str:
    """The state of a file in a few words, empty if it has nothing to do with GPUs or NPUs."""
    counts = counts_of(analysis.findings)
    parts = [
        text.in_language(language)
        for number, text in (
            (counts.problems, plural("editor.problems", counts.problems)),
            (counts.safe, message("editor.safe-to-fix", number=counts.safe)),
            (counts.advice, message("editor.advice", number=counts.advice)),
        )
        if number
    ]
    if parts:
        return message("editor.state", state=" · ".join(parts)).in_language(language)
    return message("editor.migrated").in_language(language) if _names_npu(analysis) else ""


def _names_npu(analysis: Analysis) -> bool:
    text = analysis.view.document.text
    return "torch_npu" in text or "torch.npu" in text or "torch.accelerator" in text


def reported_functions(analysis: Analysis, language: Language) -> Iterator[tuple[Span, str]]:
    """The names of functions with dynamic shapes or waits that are worth showing, and how many."""
    text = analysis.view.document.text
    functions = [hint.span for hint in analysis.shapes.hints if not hint.shape]
    by_function: list[list[Ranked]] = [[] for _ in functions]
    for ranked in analysis.shapes.ranked:
        index = bisect_right(functions, ranked.hotspot.span) - 1
        # What is in a nested function belongs to neither.
        name = ranked.hotspot.function.rpartition(".")[2]
        if index >= 0 and text[slice(*functions[index])] == name and _is_reported(ranked, analysis):
            by_function[index].append(ranked)
    for span, found in zip(functions, by_function, strict=True):
        shown = _counted(found, language)
        if shown:
            yield span, shown


def _is_reported(ranked: Ranked, analysis: Analysis) -> bool:
    around = analysis.file_context
    rule = around.catalogue.rule_named(ranked.hotspot.rule)
    return ranked.score >= REPORTED and rule is not None and is_selected(rule, around.configuration)


def _counted(found: Sequence[Ranked], language: Language) -> str:
    shapes = sum(ranked.hotspot.is_shape for ranked in found)
    synchronizations = sum(ranked.hotspot.synchronizes for ranked in found)
    counts = [plural("editor.shapes", shapes)] if shapes else []
    if synchronizations:
        counts.append(plural("editor.syncs", synchronizations))
    if not counts:
        return ""
    comma = message("punctuation.list").in_language(language)
    shown = comma.join(text.in_language(language) for text in counts)
    key = reached(found[0].reach)  # of one function, so the same for all
    return message_of("editor-lens", key, counts=shown).in_language(language)


def shapes_of_functions(analysis: Analysis) -> Iterator[tuple[Span, str]]:
    """The names of functions with the shapes that they take and give, where a size is known."""
    for each in analysis.shapes.functions:
        takes = [f"{name}: {shape}" for name, shape in each.takes]
        gives = f"→ {each.gives}" if each.gives else ""
        text = " ".join([", ".join(takes), gives]).strip()
        if text:
            yield each.span, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def register(server: NpulensServer) -> None:
    """Show the state of files and functions."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        uri = params.text_document.uri
        opened = session.of_document(uri)
        if opened is None:
            return None
        settings = session.settings_of(session.folder_of(opened.path))
        if not (settings.code_lens or settings.shape_lens):
            return None
        analysis = await session.analysis(uri)
        if analysis is not None and settings.shape_lens:
            analysis = await session.with_names(analysis)
        if analysis is None:
            return None
        found = [*_of_migration(analysis, opened, uri)] if settings.code_lens else []
        if settings.shape_lens:
            for span, shown in shapes_of_functions(analysis):
                place = analysis.view.locate(span, analysis.terms.encoding)
                if place.part.uri == uri:
                    # It only tells: there is nothing to be done by a click.
                    found.append(types.CodeLens(place.range, types.Command(shown, "")))
        return found or None


def _of_migration(analysis: Analysis, opened: OpenDocument, uri: str) -> Iterator[types.CodeLens]:
    """The state of a file and of its functions."""
    language, view = analysis.terms.language, analysis.view
    title = state_of(analysis, language) if uri == view.parts[0].uri else ""
    if title:
        command = types.Command(title, MIGRATE_FILE, arguments=[opened.uri])
        yield types.CodeLens(_FIRST_LINE, command)
    for span, shown in reported_functions(analysis, language):
        place = view.locate(span, analysis.terms.encoding)
        if place.part.uri == uri:
            command = types.Command(shown, RANK_SHAPES, arguments=[opened.uri])
            yield types.CodeLens(place.range, command)
