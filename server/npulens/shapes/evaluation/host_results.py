"""Copies to the host that are the very result: arrays for the caller, and pictures."""

import ast
from collections.abc import Iterator

from npulens.graphs.definitions import FunctionHere

_TO_PICTURES = (0, 2, 3, 1)
"""The order of dimensions that libraries for pictures expect."""


def returns_array(node: ast.expr | None, function: FunctionHere, *, is_returned: bool) -> bool:
    """Whether an expression turns a result into an array because the caller wants one.

    A chain of methods that ends in `numpy()` does, if it orders dimensions as pictures have them,
    or if it is returned by a function that says that it returns an array.
    """
    chain = list(_methods(node))
    if not chain or chain[0][0] != "numpy":
        return False
    if any(name == "permute" and _numbers(call) == _TO_PICTURES for name, call in chain):
        return True
    annotation = function.node.returns
    return is_returned and annotation is not None and "ndarray" in ast.unparse(annotation)


def _methods(node: ast.expr | None) -> Iterator[tuple[str, ast.Call]]:
    """The calls of a chain with their names, the last first."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.attr, node
        node = node.func.value


def _numbers(call: ast.Call) -> tuple[object, ...]:
    return tuple(argument.value for argument in call.args if isinstance(argument, ast.Constant))
