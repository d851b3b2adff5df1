"""Which statements are without use once an expression is replaced."""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence

from npulens.graphs.definitions import inner_statements
from npulens.graphs.frames import Evaluated
from npulens.graphs.nodes import LIBRARY, OPAQUE, Node
from npulens.syntax.walking import nodes_below

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
_Around = ast.If | ast.With
_NEW = frozenset({"matmul", "multiply", "add", "masked_fill", "softmax", "dropout"})
"""Operators whose result is a tensor of its own and no view."""
_VIEWS = frozenset({"einops.rearrange", "einops.repeat", "torch.broadcast_to"})
"""Functions that only look at a tensor in another way."""
_MOST_ROUNDS = 50
"""So long are chains of statements that are followed; the rest of a longer one stays."""


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
    for _ in range(_MOST_ROUNDS):
        live = {s for name, binders in record.loads.items() if name not in dead for s in binders}
        wanted = {s for name in dead for s in record.loads.get(name, ())}
        found = {
            statement
            for statement in wanted - live - removed - stays
            if _can_go(
                statement, record, values, consumed | moved if statement in block else consumed
            )
        }
        found |= _emptied(record.function.node.body, removed | found, values) - removed
        found |= _stores(wanted - removed, dead, stays, record) - removed
        if not found:
            break
        removed |= found
        for statement in found:
            dead |= _names(statement)
    return frozenset(removed - _inside(removed))


def _emptied(
    body: Iterable[ast.stmt], removed: set[ast.stmt], values: Mapping[int, Node]
) -> set[ast.stmt]:
    """Each `if` and `with` of which nothing is left, if entering it does nothing else."""
    if not removed:
        return set()
    return {
        node
        for node in inner_statements(body)
        if isinstance(node, _Around) and removed.issuperset(_parts(node))
        if (
            _only_computes(node.test, values, frozenset())
            if isinstance(node, ast.If)
            else all(_is_of_torch(item, values) for item in node.items)
        )
    }


def _inside(removed: set[ast.stmt]) -> set[ast.stmt]:
    """Those that go with an `if` or `with` around them."""
    return {inner for node in removed if isinstance(node, _Around) for inner in _parts(node)}


def _parts(node: ast.If | ast.With) -> tuple[ast.stmt, ...]:
    return (*node.body, *(node.orelse if isinstance(node, ast.If) else ()))


def _is_of_torch(item: ast.withitem, values: Mapping[int, Node]) -> bool:
    """Whether PyTorch's own context is entered, such as `torch.autocast(...)`, and not kept."""
    value = values.get(id(item.context_expr))
    if value is None or not value.operands or item.optional_vars is not None:
        return False
    called = value.operands[0]
    return called.operator == LIBRARY and str(called.label).startswith("torch.")


def _stores(
    wanted: set[ast.stmt], dead: set[ast.Name], stays: Collection[ast.AST], record: Evaluated
) -> set[ast.stmt]:
    """Assignments to parts of a new tensor that nothing but such assignments has use for.

    Where one of them stays, the tensor is needed as they leave it.
    """
    found: set[ast.stmt] = set()
    for statement in wanted:
        filling = _filling(statement, record)
        readers = {name for name, binders in record.loads.items() if filling & {*binders}} - dead
        stores = {_store_of(reader, record) for reader in readers}
        if None not in stores and (filling | stores).isdisjoint(stays):
            found |= {store for store in stores if store is not None}
            found |= {each for each in filling if _owner(each) is not None}
    return found


def _filling(statement: ast.stmt, record: Evaluated) -> set[ast.stmt]:
    """The assignments of a tensor and of its parts up to a statement; empty for anything else."""
    filling: set[ast.stmt] = set()
    pending = [statement]
    while pending:
        each = pending.pop()
        if each in filling:
            continue
        filling.add(each)
        owner = _owner(each)
        if owner is not None:
            pending += record.loads.get(owner, ())
        elif not (isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)):
            return set()
    return filling


def _owner(statement: ast.stmt) -> ast.Name | None:
    """The name in `name[...] = value`."""
    match statement:
        case ast.Assign([ast.Subscript(ast.Name() as owner)]):
            return owner
    return None


def _store_of(name: ast.Name, record: Evaluated) -> ast.stmt | None:
    """The statement `name[...] = value` of a name in it."""
    for _, _, statement in record.places:
        match statement:
            case ast.Assign([ast.Subscript(owner)]) if owner is name:
                return statement
    return None


def _names(node: ast.AST) -> set[ast.Name]:
    return {child for child in nodes_below(node) if isinstance(child, ast.Name)}


def _can_go(
    statement: ast.stmt,
    record: Evaluated,
    values: Mapping[int, Node],
    known: frozenset[Node],
) -> bool:
    """Whether a statement binds plain names only, and computing its value does nothing else.

    Calls of unknown functions do not count if they give a known value.
    """
    if isinstance(statement, ast.Expr):
        return _changes_what_was_computed(statement.value, record, values, known)
    if not isinstance(statement, _Assignment):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if not isinstance(name, ast.Name) or name.id in record.captured:
                return False
    return _only_computes(statement, values, known)


def _changes_what_was_computed(
    call: ast.expr, record: Evaluated, values: Mapping[int, Node], known: frozenset[Node]
) -> bool:
    """`scores.masked_fill_(...)`, where nothing but `scores` can hold the tensor."""
    match call:
        case ast.Call(ast.Attribute(ast.Name() as owner, method)):
            before = record.values.get(owner) if owner.id not in record.captured else None
            is_new = before is not None and before.operator in _NEW
            return is_new and method.endswith("_") and _only_computes(call, values, known)
    return False


def _only_computes(part: ast.AST, values: Mapping[int, Node], known: frozenset[Node]) -> bool:
    for node in nodes_below(part):
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(node, ast.Call):
            value = values.get(id(node))
            is_unknown = value is None or value.operator in (OPAQUE, "apply")
            if is_unknown and value not in known and not _is_view(value):
                return False
    return True


def _is_view(value: Node | None) -> bool:
    return value is not None and bool(value.operands) and str(value.operands[0].label) in _VIEWS
