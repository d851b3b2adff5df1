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
    match loop:
        case ast.For(iter=ast.Call(ast.Name("range"), [count])):
            parts = _divided(_followed(count, function))
            return parts is not None and len({_named(part, function) for part in parts}) == 1
    return False


def _divided(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`a` and `b` of `a // b`, `(a + b - 1) // b` and `math.ceil(a / b)`."""
    match node:
        case ast.Call(ast.Attribute(attr="ceil"), [ast.BinOp(top, ast.Div(), under)]):
            return top, under
        case ast.BinOp(ast.BinOp(added, ast.Sub(), ast.Constant(1)), ast.FloorDiv(), under):
            is_sum = isinstance(added, ast.BinOp) and isinstance(added.op, ast.Add)
            if isinstance(added, ast.BinOp) and is_sum:
                return (added.left, under) if ast.dump(added.right) == ast.dump(under) else None
        case ast.BinOp(top, ast.FloorDiv(), under):
            return top, under
    return None


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
