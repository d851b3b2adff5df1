"""In which order the calls of a body run: what comes before what, and what excludes what.

It follows the text: a loop counts as one turn, and nothing is said of functions that are called.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npulens.syntax.bindings import Function
from npulens.syntax.values import is_none
from npulens.syntax.walking import children

Condition = tuple[str, bool]
"""The text of a test, and what it comes to."""

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_FIELDS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Where a statement has others, in the order in which they run."""
_ALTERNATIVES = frozenset({"handlers", "cases"})
"""Blocks of which one part is taken at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One part of the way to a node: a statement in a block.

    Attributes:
        owner: What the block belongs to.
        field: The name of the block in it.
        block: The statements of the block.
        index: Which of them it is.
    """

    owner: ast.AST
    field: str
    block: Sequence[ast.AST]
    index: int

    @property
    def is_left(self) -> bool:
        """Whether something behind the statement leaves the block for certain."""
        return any(isinstance(each, _LEAVING) for each in self.block[self.index + 1 :])


Way = tuple[Turn, ...]
"""From the outermost block to the statement of a node."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call or an assignment, and the way to it."""

    node: ast.Call | ast.Assign | ast.AugAssign
    way: Way

    @property
    def statement(self) -> ast.AST:
        """The innermost statement that it is in."""
        return self.way[-1].block[self.way[-1].index]

    def conditions(self, start: int = 0) -> frozenset[Condition]:
        """What has to hold for it to run, from one turn of the way on."""
        return frozenset(
            condition
            for turn in self.way[start:]
            if isinstance(turn.owner, ast.If)
            for condition in _conditions(turn.owner.test, turn.field == "body")
        )


def steps(owner: ast.AST) -> Iterator[Step]:
    """The calls and assignments of a function or a loop in the order of their text.

    What functions and classes in it do is left out.
    """
    pending = [*_parts(owner, ())]
    while pending:
        way = pending.pop()
        statement = way[-1].block[way[-1].index]
        if not _has_own_scope(statement):
            yield from (Step(node, way) for node in _own_nodes(statement))
            pending += _parts(statement, way)


def _parts(owner: ast.AST, way: Way) -> Iterator[Way]:
    """The ways to the statements in a statement, the last first."""
    for field in reversed(_FIELDS):
        block = getattr(owner, field, None)
        if isinstance(block, list):
            for index in reversed(range(len(block))):
                yield (*way, Turn(owner, field, block, index))


def _has_own_scope(node: ast.AST) -> bool:
    return isinstance(node, (Function, ast.ClassDef, ast.Lambda))


def _own_nodes(statement: ast.AST) -> Iterator[ast.Call | ast.Assign | ast.AugAssign]:
    """The calls of a statement itself, without those of the statements in it."""
    blocks = [getattr(statement, field, None) for field in _FIELDS]
    inside = {id(each) for block in blocks if isinstance(block, list) for each in block}
    pending = [statement]
    while pending:
        node = pending.pop()
        if id(node) in inside or _has_own_scope(node):
            continue
        if isinstance(node, (ast.Call, ast.Assign, ast.AugAssign)):
            yield node
        pending += children(node)


def meeting(first: Way, second: Way) -> int | None:
    """At which turn two ways part; `None` if only one of them is ever taken to its end."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one.block is not other.block:
            is_either = isinstance(one.owner, ast.If) or "handlers" in (one.field, other.field)
            return None if is_either else index
        if one.index != other.index:
            return None if one.field in _ALTERNATIVES else index
    return min(len(first), len(second)) - 1


def may_follow(first: Step, second: Step) -> bool:
    """Whether the second step, which is later in the text, may run after the first."""
    at = meeting(first.way, second.way)
    if at is None or any(turn.is_left for turn in first.way[at + 1 :]):
        return False
    given = first.conditions()
    return not any((text, not value) in given for text, value in second.conditions())


def _conditions(test: ast.expr, value: bool) -> Iterator[Condition]:
    """What a test says where it comes to a value, with `not` and comparisons with `None` undone."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _conditions(test.operand, not value)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if value else ast.Or):
        for operand in test.values:
            yield from _conditions(operand, value)
    elif isinstance(test, ast.Compare) and is_none(test.comparators[-1]) and len(test.ops) == 1:
        yield ast.unparse(test.left), value is isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
    else:
        yield ast.unparse(test), value
