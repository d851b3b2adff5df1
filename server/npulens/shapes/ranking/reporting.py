"""From what evaluations have found to hotspots and hints of a segment."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from npulens.checks.segments.segment import Segment
from npulens.checks.segments.shape_answers import Hint, Hotspot
from npulens.fixes.edit_guard import expecting
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.ranking.evaluation_prefilter import is_host_code
from npulens.shapes.ranking.hints import hint_of_function, hints_of_names
from npulens.shapes.ranking.runtimes import is_copy, uses_runtime
from npulens.shapes.ranking.scoring import is_late_name
from npulens.shapes.repairs.repairs import Repairs
from npulens.shapes.values.events import Event, Recorder
from npulens.shapes.values.shape_rules import HOST_READ, PIPELINES
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span


class Home(NamedTuple):
    """A function at the top of the module, or a method of a class there.

    Attributes:
        name: `function` or `Class.method`; empty for a segment as a whole.
        segment: The segment that it is in.
        start: Where its first line starts there; places in it count from here.
        nodes: The function, or the statements of the segment.
    """

    name: str
    segment: Segment
    start: int
    nodes: Sequence[ast.AST]

    def span(self, node: ast.AST) -> Span:
        """Where one of its nodes is in the segment."""
        assert isinstance(node, (ast.expr, ast.stmt))
        return self.segment.parsed.lines.span(node)


class Reporter:
    """Turns what evaluations of one segment have found into hotspots and hints.

    Args:
        homes: The functions of the module.
        segment: Where the evaluations begin.
        runtimes: Names of the module that represent runtimes of other accelerators.
        is_of_host: The module prepares data on the host.
        with_hints: Hints are requested, too.
        all_shapes: They are given also for functions where nothing was found.
    """

    def __init__(
        self,
        homes: Mapping[ast.AST, Home],
        segment: Segment,
        runtimes: re.Pattern[str] | None,
        *,
        is_of_host: bool,
        with_hints: bool,
        all_shapes: bool,
    ) -> None:
        self._all_shapes = all_shapes
        self._with_hints = with_hints
        self._is_of_host = is_of_host
        self._homes = homes
        self._whole = Home("", segment, 0, segment.parsed.body)
        self._runtimes = runtimes
        self._known_repairs: dict[ast.AST, Repairs] = {}
        self._node_ids: dict[str, frozenset[int]] = {}

    def report(
        self, function: FunctionHere, recorder: Recorder
    ) -> tuple[tuple[Hotspot, ...], tuple[Hint, ...]]:
        """What was found from one function on."""
        hotspots = []
        on_host = self._is_of_host or is_host_code(function)
        kept = []
        for event in recorder.events.values():
            if event.rule not in PIPELINES and (on_host or is_host_code(event.function)):
                if not _is_copy_of_device(event):
                    continue
                event.is_rare = True
            if _is_nested(event.function) and is_late_name(event.function.node.name):
                event.is_rare = True
            if event.rule == HOST_READ and is_copy(event.node) and self._feeds_runtime(event):
                continue
            if event.is_elsewhere and not event.is_shape:
                continue  # a number is reported where it decides about a size
            kept.append(event)
            if event.used or not event.is_elsewhere:
                hotspots.append(self._hotspot(event))
        if not self._with_hints or not (kept or self._all_shapes):
            return tuple(hotspots), ()
        hints = []
        own = [event for event in kept if event.function.node is function.node]
        if own and function.node.name.isidentifier():
            hints.append(hint_of_function(*self.name(function), own))
        hints += hints_of_names(function, recorder, self.placed)
        return tuple(hotspots), tuple(hints)

    def _feeds_runtime(self, event: Event) -> bool:
        """Whether a copy is what another runtime, which has the model, takes."""
        return uses_runtime(self._home(event.node, event.function).segment.words, self._runtimes)

    def placed(self, node: ast.AST, function: FunctionHere) -> tuple[str, Span]:
        """The function at the top of the module that a node is in, and where there."""
        home = self._home(node, function)
        return home.name, home.span(node).shifted(-home.start)

    def name(self, function: FunctionHere) -> tuple[str, Span]:
        """The same of the name of a function."""
        node = function.node
        home = self._home(node, function)
        lines = home.segment.parsed.lines
        keyword = lines.text.index("def", lines.offset(node.lineno, node.col_offset))
        start = lines.text.index(node.name, keyword + len("def")) - home.start
        return home.name, Span(start, start + len(node.name))

    def _hotspot(self, event: Event) -> Hotspot:
        home = self._home(event.node, event.function)
        lines = home.segment.parsed.lines
        span = home.span(event.node)
        new = Repairs(event.function, lines)
        repairs = self._known_repairs.setdefault(event.function.node, new)
        used = tuple(self.placed(node, function) for node, function in event.used.items())
        return Hotspot(
            event.rule,
            span.shifted(-home.start),
            " ".join(lines.text[slice(*span)].split()),
            home.name,
            home.name or name_of(event.function),
            event.cost,
            event.loops,
            event.is_rare,
            event.synchronizes,
            event.is_shape,
            event.is_sure,
            event.advice,
            used,
            tuple(expecting(fix, lines.text).shifted(-home.start) for fix in repairs.fixes(event)),
        )

    def _home(self, node: ast.AST, function: FunctionHere) -> Home:
        """Where a node is: in the function that scopes name, unless it is not among its nodes.

        Places are looked up in the text of one segment, so it has to be the one that has the node.
        """
        for home in chain(self._homes_around(function), self._homes.values()):
            if self._contains(home, node):
                return home
        raise LookupError(f"no segment has the {type(node).__name__} in {function.node.name}")

    def _homes_around(self, function: FunctionHere) -> Iterator[Home]:
        yield from (self._homes[s.node] for s in function.scopes if s.node in self._homes)
        yield self._whole

    def _contains(self, home: Home, node: ast.AST) -> bool:
        if home.name not in self._node_ids:
            below = chain.from_iterable(map(nodes_below, home.nodes))
            self._node_ids[home.name] = frozenset(map(id, below))
        return id(node) in self._node_ids[home.name]


def _is_nested(function: FunctionHere) -> bool:
    return len([*function.scopes]) > 1


def _is_copy_of_device(event: Event) -> bool:
    """Whether an event copies a tensor to the host: there it was not, whatever prepares data."""
    callee = event.node.func if isinstance(event.node, ast.Call) else None
    return isinstance(callee, ast.Attribute) and callee.attr == "cpu"


def name_of(function: FunctionHere) -> str:
    """`function` or `Class.method`."""
    owner = function.owner
    return function.node.name if owner is None else f"{owner.node.name}.{function.node.name}"
