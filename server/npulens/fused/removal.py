"""Which statements are without use once an expression is replaced."""

import ast
from collections.abc import Iterable, Mapping

from npulens.graphs.frames import Evaluated
from npulens.graphs.nodes import OPAQUE, Node

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


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
        found |= _stores(wanted - removed, dead, record) - removed - stays
        if not found:
            return frozenset(removed)
        removed |= found
        for statement in found:
            dead |= _names(statement)


def _stores(created: set[ast.stmt], dead: set[ast.Name], record: Evaluated) -> set[ast.stmt]:
    """Assignments to parts of a new tensor that nothing but such assignments has use for."""
    found: set[ast.stmt] = set()
    for statement in created:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        readers = {n for n, binders in record.loads.items() if statement in binders} - dead
        stores = {_store_of(reader, record) for reader in readers}
        found |= {store for store in stores if store is not None and None not in stores}
    return found


def _store_of(name: ast.Name, record: Evaluated) -> ast.stmt | None:
    """The statement `name[...] = value` of a name in it."""
    for _, _, statement in record.places:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Subscript) and target.value is name:
                return statement
    return None


def _names(node: ast.AST) -> set[ast.Name]:
    return {child for child in ast.walk(node) if isinstance(child, ast.Name)}


def _can_go(statement: ast.stmt, record: Evaluated, values: Mapping[int, Node]) -> bool:
    """Whether a statement binds plain names only, and computing its value does nothing else."""
    if not isinstance(statement, _Assignment):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if not isinstance(name, ast.Name) or name.id in record.captured:
                return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
        if isinstance(node, ast.Call):
            value = values.get(id(node))
            if value is None or value.operator in (OPAQUE, "apply"):
                return False
    return True
