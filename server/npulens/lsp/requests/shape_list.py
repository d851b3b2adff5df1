"""The ranked list of dynamic shapes, of open documents and of files, for clients and for people."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from npulens.catalog.messages import message, plural
from npulens.catalog.model import Finding, Language
from npulens.catalog.tables import Catalogue
from npulens.lsp.session.client_settings import ClientSettings
from npulens.lsp.session.convert import ClientTerms
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.views import View
from npulens.shapes.ranking.findings import note_of, reached
from npulens.shapes.ranking.hotspots import Ranked
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.spans import Span
from npulens.workspace.files.discovery import discover_for
from npulens.workspace.project.file_context import FileContext, ProjectContextProvider
from npulens.workspace.runs.shape_run import places_in

_SHOWN = 5

Record = dict[str, Any]
"""A place as a client gets it."""


def records_of(analysis: Analysis) -> list[Record]:
    """The places of an open document, the worst first."""
    view, terms = analysis.view, analysis.terms
    catalogue = analysis.file_context.catalogue
    return [
        record
        for ranked in analysis.shapes.ranked
        for record in _records(ranked, view, terms, catalogue)
    ]


def files_below(
    folders: Iterable[tuple[Path, ClientSettings]],
) -> Iterator[tuple[Path, FileContext, ClientSettings]]:
    """The Python files of folders, each with what counts for its folder."""
    provider = ProjectContextProvider()
    for folder, settings in folders:
        around = provider.look(folder / "__init__.py", folder, settings.project)
        for file in discover_for(around.configuration, [str(folder)]).files:
            if kind_by_name(str(file)) is Kind.PYTHON:
                yield file, around, settings


def records_on_disk(path: Path, around: FileContext, terms: ClientTerms) -> list[Record]:
    """The places of a file that is not open; none in one that cannot be read."""
    terms = terms.in_project(around.configuration.language)
    return [
        record
        for place in places_in([path], around.catalogue, around.configuration.target).places
        for record in _records(
            place.ranked, View.of_file(path.as_uri(), place.document), terms, around.catalogue
        )
    ]


def _records(
    ranked: Ranked, view: View, terms: ClientTerms, catalogue: Catalogue
) -> Iterator[Record]:
    hotspot, reach = ranked.hotspot, ranked.reach
    rule = catalogue.rule_named(hotspot.rule)
    if rule is None:
        return
    note = note_of(hotspot.advice, is_sure=hotspot.is_sure)
    finding = Finding(rule, hotspot.span, {"symbol": hotspot.symbol}, note)
    yield {
        **_location(hotspot.span, view, terms),
        "score": ranked.score,
        "code": rule.code,
        "function": hotspot.function,
        "reached": reached(reach),
        "isShape": hotspot.is_shape,
        "waits": hotspot.synchronizes,
        "isSure": hotspot.is_sure,
        "message": finding.message(terms.language),
        "uses": [_location(span, view, terms) for _, span in hotspot.used],
    }


def _location(span: Span, view: View, terms: ClientTerms) -> Record:
    part, found = view.locate(span, terms.encoding)
    ends = {"start": found.start, "end": found.end}
    shown = {name: {"line": p.line, "character": p.character} for name, p in ends.items()}
    return {"uri": part.uri, "range": shown}


def summary(records: Sequence[Record], language: Language) -> str:
    """How many there are, and the worst of them."""
    if not records:
        return message("editor.no-shapes").in_language(language)
    lines = [plural("editor.ranked", len(records)).in_language(language)]
    for rank, record in enumerate(records[:_SHOWN], 1):
        name = unquote(record["uri"].rpartition("/")[2])
        line = record["range"]["start"]["line"] + 1
        lines.append(f"{rank}. [{record['score']}] {name}:{line} {record['message']}")
    return "\n".join(lines)
