"""Where hotspots and hints are in a module, whose functions may have moved since."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from npulens.checks.segments.segment import Segment, with_starts
from npulens.checks.segments.shape_answers import Hint, Hotspot, NamedShapes
from npulens.shapes.ranking.reporting import Home
from npulens.text.spans import Span


class Places:
    """Puts what was found in the segments of a module into offsets of the module."""

    def __init__(self, segments: Sequence[Segment], homes: Mapping[ast.AST, Home]) -> None:
        self._segments = segments
        self._homes = homes

    def hints(self) -> list[Hint]:
        """What an editor can show besides the findings, in order of place."""
        found: dict[Span, Hint] = {}
        for start, segment in with_starts(self._segments):
            for hint in segment.shapes.hints:
                moved = self._moved_hint(hint, start)
                before = found.get(moved.span)
                if before is None or not before.is_dynamic:
                    found[moved.span] = moved
        return sorted(found.values())

    def moved(self, named: NamedShapes, start: int) -> NamedShapes:
        """What a function of a segment that starts at an offset shows, in offsets of the module."""
        return NamedShapes(
            tuple(self._moved_hint(hint, start) for hint in named.hints),
            tuple(self._moved_hint(hint, start) for hint in named.reads),
            tuple(
                each._replace(span=each.span.shifted(self._place_of(each.home, start)), home="")
                for each in named.functions
            ),
        )

    def _moved_hint(self, hint: Hint, start: int) -> Hint:
        sources = (("", span.shifted(self._place_of(home, start))) for home, span in hint.sources)
        span = hint.span.shifted(self._place_of(hint.home, start))
        return hint._replace(span=span, home="", sources=tuple(sources))

    def hotspots(self) -> list[Hotspot]:
        """The hotspots in offsets of the module, each once."""
        placed: dict[tuple[Span, str], Hotspot] = {}
        for start, segment in with_starts(self._segments):
            for hotspot in segment.shapes.hotspots or ():
                moved = self._moved(hotspot, start)
                key = (moved.span, moved.rule)
                before = placed.get(key)
                if before is not None:
                    used = dict.fromkeys((*before.used, *moved.used))
                    sure = before.is_sure or moved.is_sure
                    moved = replace(before, used=tuple(used)[:8], is_sure=sure)
                placed[key] = moved
        for start, segment in with_starts(self._segments):
            for hotspot in segment.shapes.exempt_hotspots:
                moved = self._moved(hotspot, start)
                placed.setdefault((moved.span, moved.rule), replace(moved, is_rare=True))
        return list(placed.values())

    def _moved(self, hotspot: Hotspot, start: int) -> Hotspot:
        """A hotspot of a segment that starts at an offset, in offsets of the module."""
        place = self._place_of(hotspot.home, start)
        used = (("", span.shifted(self._place_of(home, start))) for home, span in hotspot.used)
        return replace(
            hotspot,
            span=hotspot.span.shifted(place),
            home="",
            used=tuple(sorted(used)),
            fixes=tuple(fix.shifted(place) for fix in hotspot.fixes),
        )

    def _place_of(self, home: str, start: int) -> int:
        """Where a function of the module starts; of no function, where the segment does."""
        return self._places[home] if home else start

    @cached_property
    def _places(self) -> dict[str, int]:
        starts = {id(segment): start for start, segment in with_starts(self._segments)}
        return {home.name: starts[id(home.segment)] + home.start for home in self._homes.values()}
