"""The state of one function while it is evaluated, and what is noted of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from npulens.graphs.definitions import FunctionHere
from npulens.graphs.nodes import Node
from npulens.syntax.walking import names_in


class TooLargeError(Exception):
    """A function whose evaluation would take too long."""


Binders = dict[str, frozenset[ast.stmt]]


class State(NamedTuple):
    """What names and attributes represent at a place."""

    names: dict[str, Node]
    attributes: dict[tuple[int, str], Node]
    binders: Binders


_NO_STATEMENTS: frozenset[ast.stmt] = frozenset()


@dataclass(slots=True)
class Evaluated:
    """The results of evaluating a function.

    Attributes:
        function: The function.
        places: Each expression of its own text that computes something, with its node and the
            statement it is in; `x *= y` is a place itself.
        loads: For each name that is read, the statements that may have bound it.
        values: What each of these names represented there.
        inlined: Functions of the file that were looked into.
        captured: Names that nested functions read.
        nested: Names of nested functions.
        names: What its names represent before each statement that was watched.
        without_gradient: It cannot be part of training.
    """

    function: FunctionHere
    places: list[tuple[ast.expr | ast.stmt, Node, ast.stmt]] = field(default_factory=list)
    loads: dict[ast.Name, frozenset[ast.stmt]] = field(default_factory=dict)
    values: dict[ast.Name, Node] = field(default_factory=dict)
    inlined: set[ast.AST] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    nested: set[str] = field(default_factory=set)
    names: dict[ast.stmt, dict[str, Node]] = field(default_factory=dict)
    without_gradient: set[ast.stmt] = field(default_factory=set)


@dataclass(slots=True)
class Frame:
    """A function under evaluation.

    Attributes:
        function: The function.
        record: What is noted of the requested function; `None` for those it calls.
        depth: How many calls deep.
        skipped: Statements that are not run.
        watched: Statements before which names are noted.
        given: Values of expressions and augmented assignments that are not looked into.
        names: What its names represent.
        attributes: What was assigned to attributes, by the serial of their owner.
        binders: The statements that may have bound a name.
        path: The conditions under which the current statement runs.
        returned: Its results with their paths.
        statement: The statement being run.
    """

    function: FunctionHere
    record: Evaluated | None
    depth: int = 0
    skipped: frozenset[ast.stmt] = frozenset()
    watched: frozenset[ast.stmt] = frozenset()
    given: Mapping[ast.expr | ast.stmt, Node] = field(default_factory=dict)
    names: dict[str, Node] = field(default_factory=dict)
    attributes: dict[tuple[int, str], Node] = field(default_factory=dict)
    binders: Binders = field(default_factory=dict)
    path: tuple[Node, ...] = ()
    returned: list[tuple[tuple[Node, ...], Node]] = field(default_factory=list)
    statement: ast.stmt = field(default_factory=ast.Pass)

    def bind(self, name: str, value: Node, also: bool = False) -> None:
        """Bind a name; `also` says that its value was changed and not replaced."""
        self.names[name] = value
        if self.record is not None:
            before = self.binders.get(name, _NO_STATEMENTS) if also else _NO_STATEMENTS
            self.binders[name] = before | {self.statement}

    def place(self, node: ast.expr | ast.stmt, value: Node) -> None:
        """Note what a segment of the function's own text computes."""
        if self.record is not None:
            self.record.places.append((node, value, self.statement))

    def load(self, node: ast.Name) -> None:
        """Note that a name is read."""
        if self.record is not None:
            value = self.names.get(node.id)
            if value is not None:
                self.record.values[node] = value
            loads, binders = self.record.loads, self.binders.get(node.id, _NO_STATEMENTS)
            before = loads.get(node)
            loads[node] = binders if before is None else before | binders

    def capture(self, node: ast.AST) -> None:
        """Note that code which runs later, or is not looked into, may read names."""
        if self.record is not None:
            self.record.captured.update(names_in(node))

    def state(self) -> State:
        """A copy of what names and attributes represent."""
        return State(dict(self.names), dict(self.attributes), dict(self.binders))

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.names, self.attributes = dict(state.names), dict(state.attributes)
        self.binders = dict(state.binders)

    def merge_binders(self, other: State) -> None:
        """After two ways of running, either may have bound a name."""
        for name, statements in other.binders.items():
            self.binders[name] = self.binders.get(name, _NO_STATEMENTS) | statements


class Closure(NamedTuple):
    """A function defined in another, and the state of that one."""

    function: FunctionHere
    around: Frame


class Call(NamedTuple):
    """A call with the values of its arguments, in the function that makes it."""

    node: ast.Call
    positional: Sequence[Node]
    keywords: Mapping[str, Node]
    frame: Frame

    @property
    def arguments(self) -> tuple[Node, ...]:
        """All of them, those by name last."""
        return (*self.positional, *self.keywords.values())
