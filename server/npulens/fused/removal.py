"""Which statements are without use once an expression is replaced."""

import ast
from collections.abc import Iterable, Mapping, Sequence

from npulens.graphs.frames import Evaluated
from npulens.graphs.nodes import LIBRARY, OPAQUE, Node

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def needless_statements(
    record: Evaluated,
    replaced: ast.expr | ast.stmt,
    consumed: frozenset[Node] = frozenset(),
    moved: frozenset[Node] = frozenset(),
    block: Sequence[ast.stmt] = (),
    kept: Iterable[ast.stmt] = (),
) -> frozenset[ast.stmt]:
    """Assignments that only the replaced expression, or each other, have use for.

    Args:
        record: The function that holds the expression.
        replaced: The expression, or the augmented assignment.
        consumed: What the replacement computes itself; calls of unknown functions that give such
            a value are not needed either.
        moved: What the replacement writes again; where a statement of the same block computes
            it, that takes place in the replacement instead.
        block: The block that the replaced expression is in.
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
            if _can_go(
                statement, record, values, consumed | moved if statement in block else consumed
            )
        }
        found |= _emptied(record, removed | found, values) - removed
        found |= _stores(wanted - removed, dead, record) - removed - stays
        if not found:
            return frozenset(removed)
        removed |= found
        for statement in found:
            dead |= _names(statement)


def _emptied(
    record: Evaluated, removed: set[ast.stmt], values: Mapping[int, Node]
) -> set[ast.stmt]:
    """Each `if` of which nothing is left but a test without calls, each `with torch.…` likewise."""
    return {
        node
        for node in ast.walk(record.function.node)
        if (isinstance(node, ast.If) and not _calls(node.test))
        or (isinstance(node, ast.With) and all(_is_of_torch(item, values) for item in node.items))
        if removed.issuperset((*node.body, *getattr(node, "orelse", ())))
    }


def _calls(test: ast.expr) -> bool:
    return any(isinstance(part, ast.Call | ast.NamedExpr) for part in ast.walk(test))


def _is_of_torch(item: ast.withitem, values: Mapping[int, Node]) -> bool:
    """Whether PyTorch's own context is entered, such as `torch.autocast(...)`, and not kept."""
    value = values.get(id(item.context_expr))
    called = value.operands[0] if value is not None and value.operands else None
    is_library = called is not None and called.operator == LIBRARY
    return (
        is_library and str(called and called.label).startswith("torch.") and not item.optional_vars
    )


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


def _can_go(
    statement: ast.stmt,
    record: Evaluated,
    values: Mapping[int, Node],
    known: frozenset[Node],
) -> bool:
    """Whether a statement binds plain names only, and computing its value does nothing else.

    Calls of unknown functions do not count if they give a known value.
    """
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
            if value is None or (value.operator in (OPAQUE, "apply") and value not in known):
                return False
    return True
