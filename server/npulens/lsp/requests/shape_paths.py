"""From where a shape comes to depend on data to what works on it, in words."""

from collections.abc import Iterator, Mapping

from npulens.catalog.messages import message
from npulens.catalog.model import Language, LocalizedText
from npulens.checks.segments.shape_answers import Hint
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.run_diagnostics import ShapesByName, name_of
from npulens.lsp.session.views import View
from npulens.shapes.ranking.hotspots import Ranked
from npulens.text.places import place_at
from npulens.text.spans import Span

_MOST_PATHS = 2
_MOST_STEPS = 12
_LONGEST = 60

_Named = Mapping[Span, list[Hint]]
"""The names whose shape comes from a place."""


def shape_at(analysis: Analysis, offset: int, seen: ShapesByName) -> tuple[str, Span] | None:
    """The shape of the tensor at a place, in Markdown, and its name there."""
    language, document = analysis.terms.language, analysis.view.document
    shapes = analysis.shapes
    near = [
        hint
        for hint in (*shapes.hints, *shapes.reads)
        if hint.shape and hint.span.start <= offset <= hint.span.end
    ]
    if not near:
        return None
    hint = min(near, key=lambda each: each.span.end - each.span.start)
    name = name_of(document, hint)
    dynamic = f" {message('editor.dynamic').in_language(language)}" if hint.is_dynamic else ""
    lines = [f"{code_of(name[1])}: {code_of(hint.shape)}{dynamic}"]
    sizes = seen.get(name, ())
    if sizes:
        text = ", ".join(code_of(str(list(each))) for each in sizes)
        lines.append(message("editor.shape-of-run", shapes=text).in_language(language))
    elif not hint.is_dynamic and not hint.is_informative:
        return None
    lines.append(message("editor.symbolic-shape").in_language(language))
    return "\n\n".join(lines), hint.span


def paths_at(analysis: Analysis, offset: int) -> tuple[list[str], Span] | None:
    """The paths that a place is on, the worst first, each in Markdown, and the place itself."""
    named: dict[Span, list[Hint]] = {}
    for hint in analysis.shapes.hints:
        for _, source in hint.sources:
            named.setdefault(source, []).append(hint)
    near = [
        (span, ranked)
        for ranked in analysis.shapes.ranked
        for span in _places(ranked, named)
        if span.start <= offset <= span.end
    ]
    if not near:
        return None
    place = min((span for span, _ in near), key=lambda span: span.end - span.start)
    found = [ranked for span, ranked in near if span == place][:_MOST_PATHS]
    return ["\n\n".join(_paragraphs(analysis, ranked, named)) for ranked in found], place


def _places(ranked: Ranked, named: _Named) -> Iterator[Span]:
    yield ranked.hotspot.span
    yield from (span for _, span in ranked.hotspot.used)
    yield from (hint.span for hint in named.get(ranked.hotspot.span, ()))


def _paragraphs(analysis: Analysis, ranked: Ranked, named: _Named) -> Iterator[str]:
    language, view, hotspot = analysis.terms.language, analysis.view, ranked.hotspot
    title, here = _kind(ranked)
    score = message("editor.score", score=ranked.score).in_language(language)
    where = ""
    if ranked.reach.is_on_host:
        where = message("editor.on-host").in_language(language)
    elif ranked.reach.is_hot or ranked.reach.is_cold:
        reached = message("editor.training" if ranked.reach.is_hot else "editor.cold")
        where = reached.in_language(language)
    yield f"**{title.in_language(language)}**{score}{where}"
    steps = [(hotspot.span, f"{code_of(hotspot.symbol)} {here.in_language(language)}")]
    steps += sorted(_steps(analysis, ranked, named))
    yield "\n".join(
        f"{number}. {in_its_line(text, span, view, language)}"
        for number, (span, text) in enumerate(steps[:_MOST_STEPS], 1)
    )


def _kind(ranked: Ranked) -> tuple[LocalizedText, LocalizedText]:
    """What a hotspot is, and what happens there."""
    if ranked.hotspot.is_shape:
        here = message("editor.both-here" if ranked.hotspot.synchronizes else "editor.shape-here")
        return message("editor.dynamic-shape"), here
    if ranked.hotspot.synchronizes:
        return message("editor.host-sync"), message("editor.waits-here")
    return message("editor.batch-size"), message("editor.size-here")


def _steps(analysis: Analysis, ranked: Ranked, named: _Named) -> Iterator[tuple[Span, str]]:
    """The names that have a shape from there, and what works on it."""
    language, text = analysis.terms.language, analysis.view.document.text
    has_shape = message("editor.has-shape").in_language(language)
    works = message("editor.works-on-it").in_language(language)
    for hint in named.get(ranked.hotspot.span, ()):
        yield hint.span, f"{code_of(text[slice(*hint.span)])} {has_shape} {code_of(hint.shape)}"
    for _, span in ranked.hotspot.used:
        yield span, f"{code_of(text[slice(*span)])} {works}"


def in_its_line(code: str, span: Span, view: View, language: Language) -> str:
    """The text for a span, after the line that it starts in, and in a notebook the cell."""
    part = view.part_of(span.start)
    line = place_at(part.document, span.start - part.start).line
    if len(view.parts) == 1:
        return message("editor.in-line", line=line, code=code).in_language(language)
    cell = view.parts.index(part) + 1
    return message("editor.in-cell", line=line, cell=cell, code=code).in_language(language)


def code_of(text: str) -> str:
    """Code within a text in Markdown, in one line and not too long."""
    line = " ".join(text[: 10 * _LONGEST].split())
    if len(line) > _LONGEST:
        line = f"{line[:_LONGEST]}…"
    return f"`` {line} ``" if "`" in line else f"`{line}`"
