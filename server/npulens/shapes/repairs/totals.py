"""Whether a sum of floats may become a tensor, as far as its function shows."""

import ast
from collections.abc import Mapping

from npulens.graphs.definitions import FunctionHere
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import is_bound

_TURNED_BACK = frozenset({"float", "int"})
"""What makes a number of a number and of a tensor with one element alike."""
_SCALED = (ast.Div, ast.Mult)
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"})
_MADE_ALIKE = frozenset({"device", "dtype"})
"""Without these, a tensor that is made of another takes its device and type."""


def may_be_tensor(total: str, function: FunctionHere, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether nothing notices that a sum is a tensor and no float.

    So it is if all that is done with it turns it into a number again, or into a tensor of a type
    and on a device that are named. Lists, texts, comparisons, callers and callees would be given
    a tensor for a float.
    """
    names = [node for node in parents if isinstance(node, ast.Name) and node.id == total]
    shared = [node for node in parents if isinstance(node, (ast.Global, ast.Nonlocal))]
    begins = any(isinstance(parents[name], (ast.Assign, ast.Tuple)) for name in names)
    return (
        begins
        and not any(total in node.names for node in shared)
        and all(_takes_tensor(name, function, parents) for name in names)
    )


def _takes_tensor(
    name: ast.Name, function: FunctionHere, parents: Mapping[ast.AST, ast.AST]
) -> bool:
    if isinstance(name.ctx, ast.Load):
        return _is_turned_back(name, function, parents)
    statement = parents[name]
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and _is_read_or_detached(statement.value)
    if isinstance(statement, ast.Tuple):
        statement = parents[statement]
    return isinstance(statement, ast.Assign) and _is_of_numbers(statement.value)


def _is_turned_back(
    node: ast.expr, function: FunctionHere, parents: Mapping[ast.AST, ast.AST]
) -> bool:
    parent = parents[node]
    while isinstance(parent, (ast.BinOp, ast.List, ast.Tuple)):
        if isinstance(parent, ast.BinOp) and not isinstance(parent.op, _SCALED):
            return False
        node, parent = parent, parents[parent]
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    if isinstance(parent.func, ast.Name) and parent.func.id in _TURNED_BACK:
        return isinstance(node, (ast.Name, ast.BinOp)) and not is_bound(
            parent.func.id, function.scope
        )
    given = {keyword.arg for keyword in parent.keywords}
    return given >= _MADE_ALIKE and not _MAKERS.isdisjoint(
        qualified_names(parent.func, function.scope)
    )


def _is_read_or_detached(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in ("item", "detach")
    )


def _is_of_numbers(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_of_numbers, value.elts))
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
