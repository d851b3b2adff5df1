"""What was found in functions follows an edit of a comment, which leaves their trees."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeVar

from npulens.catalog.model import Edit, Fix, Related
from npulens.checks.segments.fused_answers import Idiom, Recognition
from npulens.checks.segments.segment import Segment
from npulens.checks.segments.shape_answers import Evaluation, Hint, Hotspot
from npulens.syntax.bindings import Function
from npulens.text.differences import changed_part
from npulens.text.spans import Span

_Found = TypeVar("_Found")


def follow_comment(segment: Segment, before: Segment, others: Sequence[Segment]) -> None:
    """Move what was found in functions; what the edit touches is forgotten, to be found anew.

    The statement in which a comment was edited has taken over what is known. Functions of the other
    statements of the module may lead into it.
    """
    functions = dict(_functions(before.parsed.body))
    moves = _Moves(before, segment, functions)
    fused, shapes = segment.fused, segment.shapes
    of_others = partial(moves.evaluation, starts=moves.starts)
    own = partial(moves.evaluation, starts={**moves.starts, "": 0})
    fused.recognized_before = _kept(fused.recognized_before, moves.recognition)
    shapes.evaluations = _kept(shapes.evaluations, own)
    for other in others:
        rests_on = (each.rests_on for each in other.shapes.evaluations.values())
        if not frozenset(functions.values()).isdisjoint(chain.from_iterable(rests_on)):
            other.shapes.evaluations = _kept(other.shapes.evaluations, of_others)
            other.shapes.hotspots = None


def _functions(body: Iterable[ast.stmt], owner: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The functions of statements and the methods of classes, by `function` or `Class.method`."""
    for node in body:
        if isinstance(node, Function):
            yield owner + node.name, node
        elif isinstance(node, ast.ClassDef) and not owner:
            yield from _functions(node.body, f"{node.name}.")
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _functions(node.body, owner)


def _kept(
    known: Mapping[ast.AST, _Found], moved: Callable[[_Found], _Found]
) -> dict[ast.AST, _Found]:
    kept = {}
    for node, found in known.items():
        with suppress(_TouchedError):
            kept[node] = moved(found)
    return kept


class _TouchedError(Exception):
    """The edit touches a place: what was found there may be something else now."""


class _Moves:
    """Where places are after an edit of a comment: what is behind it has moved."""

    def __init__(self, before: Segment, after: Segment, functions: Mapping[str, ast.stmt]) -> None:
        lines = before.parsed.lines
        self._lines = lines
        self._edit = changed_part(lines.text, after.parsed.text)
        self._longer = len(after.parsed.text) - len(lines.text)
        self.starts = {name: lines.starts[f.lineno - 1] for name, f in functions.items()}

    def recognition(self, found: Recognition) -> Recognition:
        """What was found in a function."""
        return found._replace(idioms=tuple(map(self._idiom, found.idioms)))

    def _idiom(self, idiom: Idiom) -> Idiom:
        start = self._lines.starts[idiom.function.lineno - 1]
        finding = idiom.finding
        related = (Related(self._span(each.span, start), each.text) for each in finding.related)
        moved = replace(
            finding,
            span=self._span(finding.span, start),
            fixes=self._fixes(finding.fixes, start),
            related=tuple(related),
        )
        return idiom._replace(finding=moved)

    def evaluation(self, found: Evaluation, starts: Mapping[str, int]) -> Evaluation:
        """What was found from a function on; places count from the starts of their homes."""
        return replace(
            found,
            hotspots=tuple(self._hotspot(each, starts) for each in found.hotspots),
            hints=tuple(self._hint(each, starts) for each in found.hints),
        )

    def _hotspot(self, hotspot: Hotspot, starts: Mapping[str, int]) -> Hotspot:
        span = self._place(hotspot.home, hotspot.span, starts)[1]
        used = tuple(self._place(*each, starts) for each in hotspot.used)
        fixes = hotspot.fixes
        if hotspot.home in starts:
            fixes = self._fixes(fixes, starts[hotspot.home])
        return replace(hotspot, span=span, used=used, fixes=fixes)

    def _hint(self, hint: Hint, starts: Mapping[str, int]) -> Hint:
        span = self._place(hint.home, hint.span, starts)[1]
        sources = tuple(self._place(*each, starts) for each in hint.sources)
        return hint._replace(span=span, sources=sources)

    def _place(self, home: str, span: Span, starts: Mapping[str, int]) -> tuple[str, Span]:
        return home, self._span(span, starts[home]) if home in starts else span

    def _span(self, span: Span, start: int) -> Span:
        """A span that counts from a start; what is around the comment has other text now."""
        if start > self._edit.start or span.end + start <= self._edit.start:
            return span
        if span.start + start < self._edit.end:
            raise _TouchedError
        return span.shifted(self._longer)

    def _fixes(self, fixes: Iterable[Fix], start: int) -> tuple[Fix, ...]:
        return tuple(
            replace(fix, edits=tuple(self._fix_edit(each, start) for each in fix.edits))
            for fix in fixes
        )

    def _fix_edit(self, edit: Edit, start: int) -> Edit:
        """An edit of a fix, which may end where it does for what follows there."""
        first, end = edit.span.start + start, edit.span.end + start
        if start <= self._edit.start <= end and first <= self._edit.end:
            raise _TouchedError
        return Edit(self._span(edit.span, start), edit.replacement)
