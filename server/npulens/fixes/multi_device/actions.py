"""The changes of nodes that the steps of a rewrite ask for, by where the nodes stand."""

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from npulens.fixes.multi_device.plan import Insertion
from npulens.fixes.multi_device.reading import Reading
from npulens.fixes.scripts import Script

Position: TypeAlias = tuple[int, int]
"""Line and column, in characters."""
Change: TypeAlias = Callable[[cst.BaseExpression], cst.BaseExpression]

_FIRST = "torch.distributed.get_rank() == 0"
_NOT_FIRST = "torch.distributed.get_rank() != 0"
HAS_OTHERS = "torch.distributed.is_initialized()"
"""Whether there are other processes."""


class FileActions:
    """What is to be done to the nodes of a file.

    A module may be run by other scripts too, in one process: what is put into it asks whether there
    are others.

    Attributes:
        is_first: The expression for whether this is the first process.
        is_not_first: The opposite.
        changes: What is made of an expression, by where it starts and ends.
        before: Lines that are put before a statement.
        behind: Lines that are put behind a statement.
        guarded: Statements that the first process alone runs.
        removed: Statements that go.
        modules: Those that what is put in needs.
        helpers: The functions that it needs.
    """

    def __init__(self, script: Script, *, is_started: bool) -> None:
        self.script = script
        self.is_started = is_started
        self.is_first = _FIRST if is_started else f"not {HAS_OTHERS} or {_FIRST}"
        self.is_not_first = _NOT_FIRST if is_started else f"{HAS_OTHERS} and {_NOT_FIRST}"
        self.changes: dict[tuple[Position, Position], list[Change]] = defaultdict(list)
        self.before: dict[Position, list[str]] = defaultdict(list)
        self.behind: dict[Position, list[str]] = defaultdict(list)
        self.guarded: set[Position] = set()
        self.removed: set[Position] = set()
        self.modules: set[str] = set()
        self.helpers: set[str] = set()

    @property
    def is_empty(self) -> bool:
        found = (self.changes, self.before, self.behind, self.guarded, self.removed)
        return not any(found)

    def start(self, node: ast.stmt | ast.expr) -> Position:
        """Where a node starts."""
        return self._position(self.script.span(node).start)

    def span(self, node: ast.expr) -> tuple[Position, Position]:
        """Where an expression starts and ends."""
        span = self.script.span(node)
        return self._position(span.start), self._position(span.end)

    def insert(self, at: Insertion, *lines: str) -> None:
        """Put lines before or behind a statement, in the order of the calls."""
        (self.behind if at.behind else self.before)[self.start(at.statement)] += lines

    def _position(self, offset: int) -> Position:
        starts = self.script.lines.starts
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1]


class Actions:
    """What is to be done to the nodes of a program, each in the file it stands in."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.files = {
            tree: FileActions(script, is_started=script is reading.script)
            for tree, script in reading.scripts.items()
        }

    @property
    def started(self) -> FileActions:
        """Those of the script that is started."""
        return self.files[self._reading.script.tree]

    def of(self, node: ast.AST) -> FileActions:
        """Those of the file that a node stands in."""
        return self.files[self._reading.script_of(node).tree]

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self._reading.source(node)

    def change(self, node: ast.expr, change: Change, *modules: str) -> None:
        """Make something of an expression, which needs some modules.

        What was asked for first is done first.
        """
        file = self.of(node)
        file.changes[file.span(node)].append(change)
        file.modules.update(modules)

    def insert(self, at: Insertion, *lines: str) -> None:
        """Put lines that need torch before or behind a statement."""
        file = self.of(at.statement)
        file.insert(at, *lines)
        file.modules.add("torch")
