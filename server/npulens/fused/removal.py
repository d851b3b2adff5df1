"""Which statements are without use once an expression is replaced."""

import ast
from collections.abc import Iterable, Mapping

from npulens.graphs.frames import Evaluated
from npulens.graphs.nodes import OPAQUE, Node

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
_NEW = frozenset({"matmul", "multiply", "add", "masked_fill", "softmax", "dropout"})
"""Operators whose result is a tensor of its own and no view."""


def needless_statements(
    record: Evaluated, replaced: ast.expr | ast.stmt, kept: Iterable[ast.stmt] = ()
) -> frozenset[ast.stmt]:
    """Assignments that only the replaced expression, or each other, have use for.

    Args:
        record: The function that holds the expression.
        replaced: The expression, or the augmented assignment.
        kept: Statements that must stay.
    """
    values = {id(node): value for node, value, _ in record.places}
    dead = _names(replaced)
    removed: set[ast.stmt] = set()
    stays = {*kept, replaced}
    while True:
        live = {s for name, binders in record.loads.items() if name not in dead for s in binders}
        wanted = {s for name in dead for s in record.loads.get(name, ())}
        found = {
            statement
            for statement in wanted - live - removed - stays
            if _can_go(statement, record, values)
        }
        found |= _emptied(record.function.node, removed | found, values) - removed
        if not found:
            return frozenset(removed - _inside(removed))
        removed |= found
        for statement in found:
            dead |= _names(statement)


def _emptied(
    function: ast.AST, removed: set[ast.stmt], values: Mapping[int, Node]
) -> set[ast.stmt]:
    """Conditions of which no statement is left, if asking them does nothing."""
    if not removed:
        return set()
    return {
        node
        for node in ast.walk(function)
        if isinstance(node, ast.If)
        and all(inner in removed for inner in (*node.body, *node.orelse))
        and _only_computes(node.test, values)
    }


def _inside(removed: set[ast.stmt]) -> set[ast.stmt]:
    """Those that go with a condition around them."""
    return {
        inner
        for node in removed
        if isinstance(node, ast.If)
        for inner in (*node.body, *node.orelse)
    }


def _names(node: ast.AST) -> set[ast.Name]:
    return {child for child in ast.walk(node) if isinstance(child, ast.Name)}


def _can_go(statement: ast.stmt, record: Evaluated, values: Mapping[int, Node]) -> bool:
    """Whether a statement binds plain names only, and computing its value does nothing else."""
    if isinstance(statement, ast.Expr):
        return _changes_what_was_computed(statement.value, record, values)
    if not isinstance(statement, _Assignment):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if not isinstance(name, ast.Name) or name.id in record.captured:
                return False
    return _only_computes(statement, values)


def _changes_what_was_computed(
    call: ast.expr, record: Evaluated, values: Mapping[int, Node]
) -> bool:
    """`scores.masked_fill_(...)`, where nothing but `scores` can hold the tensor."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    if not isinstance(owner, ast.Name) or owner.id in record.captured:
        return False
    before = record.values.get(owner)
    is_new = before is not None and before.operator in _NEW
    return is_new and call.func.attr.endswith("_") and _only_computes(call, values)


def _only_computes(part: ast.AST, values: Mapping[int, Node]) -> bool:
    for node in ast.walk(part):
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
        if isinstance(node, ast.Call):
            value = values.get(id(node))
            if value is None or value.operator in (OPAQUE, "apply"):
                return False
    return True
