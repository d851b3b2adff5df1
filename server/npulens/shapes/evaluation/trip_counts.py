"""Loops that turn once, since what is counted is divided by itself."""

import ast
from collections.abc import Iterator

from npulens.graphs.definitions import FunctionHere
from npulens.syntax.walking import nodes_below

_DEEPEST = 4
"""How many names are followed, one after the other."""
_CONFIGURATION = "self.config."


def runs_once(loop: ast.stmt, function: FunctionHere) -> bool:
    """Whether a loop counts how often a number goes into itself.

    `range((length + part - 1) // part)` does where both names represent the same value of the
    configuration, through assignments of the function and of the constructor.
    """
    count = loop.iter if isinstance(loop, ast.For) else None
    if not (isinstance(count, ast.Call) and isinstance(count.func, ast.Name)):
        return False
    if count.func.id != "range" or len(count.args) != 1:
        return False
    parts = _divided(_followed(count.args[0], function))
    if parts is None:
        return False
    first, second = (_named(part, function) for part in parts)
    return first == second


def _divided(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`a` and `b` of `a // b`, `(a + b - 1) // b` and `math.ceil(a / b)`."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        called, inside = node.func, node.args[0]
        is_up = isinstance(called, ast.Attribute) and called.attr == "ceil"
        is_part = isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Div)
        if is_up and is_part:
            assert isinstance(inside, ast.BinOp)
            return inside.left, inside.right
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
        return None
    top, under = node.left, node.right
    if isinstance(top, ast.BinOp) and isinstance(top.op, ast.Sub) and _is_one(top.right):
        added = top.left
        if not (isinstance(added, ast.BinOp) and isinstance(added.op, ast.Add)):
            return None
        if ast.dump(added.right) != ast.dump(under):
            return None
        return added.left, under
    return top, under


def _named(node: ast.expr, function: FunctionHere) -> str:
    """An expression with names followed to where they come from."""
    return ast.unparse(_followed(node, function)).replace(_CONFIGURATION, "config.")


def _followed(node: ast.expr, function: FunctionHere) -> ast.expr:
    for _ in range(_DEEPEST):
        values = list(_values(node, function))
        if len(values) != 1 or values[0] is None:
            break
        node = values[0]
    return node


def _values(node: ast.expr, function: FunctionHere) -> Iterator[ast.expr | None]:
    """What is assigned to a name of the function, or to an attribute by the constructor."""
    owner = function.owner
    place: ast.AST | None = None
    if isinstance(node, ast.Name):
        place = function.node
        if any(argument.arg == node.id for argument in function.parameters):
            yield None
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and owner is not None:
        constructor = owner.methods.get("__init__")
        is_own = node.value.id == function.receiver and constructor is not None
        place = constructor.node if is_own and constructor is not None else None
    text = ast.unparse(node) if place is not None else ""
    for part in nodes_below(place) if place is not None else ():
        if isinstance(part, ast.Assign):
            if any(ast.unparse(target) == text for target in part.targets):
                yield part.value
        elif isinstance(part, (ast.AugAssign, ast.For)) and ast.unparse(part.target) == text:
            yield None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
