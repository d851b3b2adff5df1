"""From what evaluations have found to hotspots and hints of a piece."""

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from npulens.checks.pieces import Hint, Hotspot, Piece
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.events import Event, Recorder
from npulens.shapes.hints import hint_of_function, hints_of_names
from npulens.shapes.repairs import Repairs
from npulens.shapes.runtimes import is_copy, uses_runtime
from npulens.shapes.worth import is_host_code
from npulens.syntax.scopes import FunctionScope, Scope
from npulens.text.lines import LineMap
from npulens.text.spans import Span

PIPELINES = frozenset({"loader-keeps-last-batch", "padding-to-longest", "random-size"})
"""The rules on the size of batches, which the host decides."""


class Home(NamedTuple):
    """A function at the top of the module, or a method of a class there.

    Attributes:
        name: `function` or `Class.method`; empty for a piece as a whole.
        piece: The piece that it stands in.
        start: Where its first line starts there; places in it count from here.
    """

    name: str
    piece: Piece
    start: int


class Reporter:
    """Turns what evaluations of one piece have found into hotspots and hints.

    Args:
        homes: The functions of the module.
        piece: Where the evaluations begin.
        runtimes: Names of the module that stand for runtimes of other accelerators.
        with_hints: Hints are asked for, too.
    """

    def __init__(
        self,
        homes: Mapping[ast.AST, Home],
        piece: Piece,
        runtimes: re.Pattern[str] | None,
        *,
        with_hints: bool,
    ) -> None:
        self._with_hints = with_hints
        self._homes = homes
        self._piece = piece
        self._runtimes = runtimes
        self._known_repairs: dict[ast.AST, Repairs] = {}

    def report(
        self, function: FunctionHere, recorder: Recorder
    ) -> tuple[tuple[Hotspot, ...], tuple[Hint, ...]]:
        """What was found from one function on."""
        hotspots = []
        on_host = is_host_code(function)
        kept = []
        for event in recorder.events.values():
            if on_host and event.rule not in PIPELINES:
                continue
            if event.rule not in PIPELINES and is_host_code(event.function):
                continue
            if event.rule == "host-read" and is_copy(event.node) and self._feeds_runtime(event):
                continue
            if event.is_elsewhere and not event.is_shape:
                continue  # a number is told where it decides about a size
            kept.append(event)
            if event.used or not event.is_elsewhere:
                hotspots.append(self._hotspot(event))
        if not (kept and self._with_hints):
            return tuple(hotspots), ()
        hints = []
        own = [event for event in kept if event.function.node is function.node]
        if own and function.node.name.isidentifier():
            hints.append(hint_of_function(*self._name(function), own))
        hints += hints_of_names(recorder, self._placed)
        return tuple(hotspots), tuple(hints)

    def _feeds_runtime(self, event: Event) -> bool:
        """Whether a copy is what another runtime, which has the model, takes."""
        return uses_runtime(self._home(event.function).piece.words, self._runtimes)

    def _placed(self, node: ast.AST, function: FunctionHere) -> tuple[str, Span]:
        home = self._home(function)
        return home.name, _span(node, home.piece.parsed.lines).shifted(-home.start)

    def _name(self, function: FunctionHere) -> tuple[str, Span]:
        home = self._home(function)
        node, lines = function.node, self._piece.parsed.lines
        keyword = lines.text.index("def", lines.offset(node.lineno, node.col_offset))
        start = lines.text.index(node.name, keyword + len("def")) - home.start
        return home.name, Span(start, start + len(node.name))

    def _hotspot(self, event: Event) -> Hotspot:
        home = self._home(event.function)
        lines = home.piece.parsed.lines
        span = _span(event.node, lines)
        used = tuple(self._placed(node, function) for node, function in event.used.items())
        return Hotspot(
            event.rule,
            span.shifted(-home.start),
            " ".join(lines.text[slice(*span)].split()),
            home.name,
            home.name or name_of(event.function),
            event.cost,
            event.loops,
            event.is_rare,
            event.waits,
            event.is_shape,
            event.advice,
            used,
            tuple(
                fix.shifted(-home.start)
                for fix in self._repairs(event.function, lines).fixes(event)
            ),
        )

    def _repairs(self, function: FunctionHere, lines: LineMap) -> Repairs:
        if function.node not in self._known_repairs:
            self._known_repairs[function.node] = Repairs(function, lines)
        return self._known_repairs[function.node]

    def _home(self, function: FunctionHere) -> Home:
        scope: Scope | None = function.scope
        while scope is not None:
            if isinstance(scope, FunctionScope) and scope.node in self._homes:
                return self._homes[scope.node]
            scope = scope.parent
        return Home("", self._piece, 0)


def _span(node: ast.AST, lines: LineMap) -> Span:
    assert isinstance(node, (ast.expr, ast.stmt))
    start = lines.offset(node.lineno, node.col_offset)
    return Span(start, lines.offset(node.end_lineno or 0, node.end_col_offset or 0))


def name_of(function: FunctionHere) -> str:
    """`function` or `Class.method`."""
    owner = function.owner
    return function.node.name if owner is None else f"{owner.node.name}.{function.node.name}"
