"""From what evaluations have found to hotspots and hints of a piece."""

import ast
import re
from collections.abc import Mapping

from npulens.checks.pieces import Hint, Hotspot, Piece
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.events import Event, Recorder
from npulens.shapes.hints import hint_of_function, hints_of_names
from npulens.shapes.repairs import Repairs
from npulens.shapes.runtimes import is_copy, uses_runtime
from npulens.shapes.worth import is_host_code
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import FunctionScope, Scope
from npulens.text.lines import LineMap
from npulens.text.spans import Span

PIPELINES = frozenset({"loader-keeps-last-batch", "padding-to-longest", "random-size"})
"""The rules on the size of batches, which the host decides."""


class Reporter:
    """Turns what evaluations of one piece have found into hotspots and hints.

    Args:
        homes: For the functions of the module the top-level name and the piece they are in.
        piece: Where the evaluations begin.
        runtimes: Names of the module that stand for runtimes of other accelerators.
        with_hints: Hints are asked for, too.
    """

    def __init__(
        self,
        homes: Mapping[ast.AST, tuple[str, Piece]],
        piece: Piece,
        runtimes: re.Pattern[str] | None,
        *,
        with_hints: bool,
    ) -> None:
        self._with_hints = with_hints
        self._homes = homes
        self._piece = piece
        self._runtimes = runtimes
        self._lines: dict[int, LineMap] = {}
        self._known_repairs: dict[ast.AST, Repairs] = {}
        self.hotspots: list[Hotspot] = []
        self.hints: list[Hint] = []

    def add(self, function: FunctionHere, recorder: Recorder) -> None:
        """What was found from one function on."""
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
                self.hotspots.append(self._hotspot(event))
        if not (kept and self._with_hints):
            return
        own = [event for event in kept if event.function.node is function.node]
        if own and function.node.name.isidentifier():
            self.hints.append(hint_of_function(self._name(function), own))
        self.hints += hints_of_names(recorder, self._placed)

    def _feeds_runtime(self, event: Event) -> bool:
        """Whether a copy is what another runtime, which has the model, takes."""
        return uses_runtime(self._home(event.function)[1].parsed.text, self._runtimes)

    def _placed(self, node: ast.AST, function: FunctionHere) -> tuple[str, Span]:
        home, piece = self._home(function)
        return home if piece is not self._piece else "", self._span(node, piece)

    def _name(self, function: FunctionHere) -> Span:
        node, lines = function.node, self._lines_of(self._piece)
        keyword = lines.text.index("def", lines.offset(node.lineno, node.col_offset))
        start = lines.text.index(node.name, keyword + len("def"))
        return Span(start, start + len(node.name))

    def _hotspot(self, event: Event) -> Hotspot:
        home, piece = self._home(event.function)
        span = self._span(event.node, piece)
        used = tuple(self._placed(node, function) for node, function in event.used.items())
        return Hotspot(
            event.rule,
            span,
            " ".join(piece.parsed.text[slice(*span)].split()),
            home if piece is not self._piece else "",
            self._outermost(event.function),
            event.cost,
            event.loops,
            event.is_rare,
            event.waits,
            event.is_shape,
            event.advice,
            used,
            self._repairs(event.function, piece).fixes(event),
        )

    def _repairs(self, function: FunctionHere, piece: Piece) -> Repairs:
        if function.node not in self._known_repairs:
            self._known_repairs[function.node] = Repairs(function, self._lines_of(piece))
        return self._known_repairs[function.node]

    def _home(self, function: FunctionHere) -> tuple[str, Piece]:
        scope: Scope | None = function.scope
        while scope is not None:
            if isinstance(scope, FunctionScope) and scope.node in self._homes:
                return self._homes[scope.node]
            scope = scope.parent
        return "", self._piece

    def _outermost(self, function: FunctionHere) -> str:
        """The function or method that a nested function stands in, as the call graph names it."""
        scope: Scope | None = function.scope
        while scope is not None:
            node = scope.node if isinstance(scope, FunctionScope) else None
            if isinstance(node, Function) and node in self._homes:
                home = self._homes[node][0]
                return node.name if node.name == home else f"{home}.{node.name}"
            scope = scope.parent
        return name_of(function)

    def _lines_of(self, piece: Piece) -> LineMap:
        if id(piece) not in self._lines:
            self._lines[id(piece)] = LineMap(piece.parsed.text)
        return self._lines[id(piece)]

    def _span(self, node: ast.AST, piece: Piece) -> Span:
        assert isinstance(node, ast.expr | ast.stmt)
        lines = self._lines_of(piece)
        start = lines.offset(node.lineno, node.col_offset)
        return Span(start, lines.offset(node.end_lineno or 0, node.end_col_offset or 0))


def name_of(function: FunctionHere) -> str:
    """`function` or `Class.method`."""
    owner = function.owner
    return function.node.name if owner is None else f"{owner.node.name}.{function.node.name}"
