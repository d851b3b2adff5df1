"""The changes of nodes that the steps of a rewrite ask for, by where the nodes stand."""

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from npulens.fixes.multi_device.plan import Insertion
from npulens.fixes.scripts import Script

Position: TypeAlias = tuple[int, int]
"""Line and column, in characters."""
Change: TypeAlias = Callable[[cst.BaseExpression], cst.BaseExpression]


class Actions:
    """What is to be done to the nodes of a script.

    Attributes:
        changes: What is made of an expression, by where it starts and ends.
        before: Lines that are put before a statement.
        behind: Lines that are put behind a statement.
        guarded: Statements that the first process alone runs.
        removed: Statements that go.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.changes: dict[tuple[Position, Position], list[Change]] = defaultdict(list)
        self.before: dict[Position, list[str]] = defaultdict(list)
        self.behind: dict[Position, list[str]] = defaultdict(list)
        self.guarded: set[Position] = set()
        self.removed: set[Position] = set()

    def start(self, node: ast.stmt | ast.expr) -> Position:
        """Where a node starts."""
        return self._position(self.script.span(node).start)

    def change(self, node: ast.expr, change: Change) -> None:
        """Make something of an expression; what was asked for first is done first."""
        span = self.script.span(node)
        self.changes[self._position(span.start), self._position(span.end)].append(change)

    def insert(self, at: Insertion, *lines: str) -> None:
        """Put lines before or behind a statement, in the order of the calls."""
        (self.behind if at.behind else self.before)[self.start(at.statement)] += lines

    def _position(self, offset: int) -> Position:
        starts = self.script.lines.starts
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1]
