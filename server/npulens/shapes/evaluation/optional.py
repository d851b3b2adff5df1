"""Parameters of a function that may be left out, such as the length of a mask.

`n if n > 0 else lengths.max().item()` depends on data only where the caller does not say `n`.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.shapes.evaluation.tensor_evidence import known_names, parameters
from npulens.shapes.values.shape_values import (
    CONSTANT,
    NOTHING,
    UNKNOWN,
    Number,
    Tensor,
    Value,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import SCALAR
from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.by_node import once_by_node


class OptionalParameter(NamedTuple):
    """A parameter whose default says that nothing was given: `None`, 0 or -1.

    Attributes:
        place: Its place, or one that no call reaches if it is given by name only.
        name: Its name.
        left_out: What it is taken to hold where nothing is known of the caller.
        given: What it holds where the caller gives it.
    """

    place: int
    name: str
    left_out: Value
    given: Value


_BY_NAME_ONLY = 1_000
_GREATER_OR_OTHER = (ast.IsNot, ast.NotEq, ast.Gt, ast.GtE)


@once_by_node
def optional_parameters(node: Function) -> tuple[OptionalParameter, ...]:
    """The parameters of a function that may be left out."""
    return tuple(_optional(node))


def _optional(node: Function) -> Iterator[OptionalParameter]:
    positional = [*node.args.posonlyargs, *node.args.args]
    values = dict(parameters(node, False))
    for argument, default in with_defaults(node.args):
        nothing = _nothing(default)
        if nothing is None:
            continue
        place = positional.index(argument) if argument in positional else _BY_NAME_ONLY
        name, value = argument.arg, values[argument.arg]
        if isinstance(value, Tensor) or name in known_names(node).tensors:
            yield OptionalParameter(place, name, value, Tensor())
        elif value in (CONSTANT, UNKNOWN):
            left_out = nothing if value == CONSTANT else UNKNOWN
            yield OptionalParameter(place, name, left_out, Number(name))


def is_optional(node: Function, name: str) -> bool:
    """Whether a name is that of a parameter that may be left out."""
    return any(each.name == name for each in optional_parameters(node))


def _nothing(default: ast.expr | None) -> Value | None:
    """The value of a default that means nothing; `None` for any other."""
    is_negative = False
    if isinstance(default, ast.UnaryOp) and isinstance(default.op, ast.USub):
        is_negative, default = True, default.operand
    value = default.value if isinstance(default, ast.Constant) else ""
    if value is None:
        return NOTHING
    if type(value) is not int or not (is_negative or value == 0):
        return None
    return Number(f"-{value}" if is_negative else "0")


def is_given(value: Value | None) -> bool:
    """Whether an argument is a size, or surely a tensor, and depends on no data."""
    if isinstance(value, Number):
        is_size = value.text not in ("True", "False") and (value.value is None or value.value > 0)
        return is_size and not value.sources
    if not isinstance(value, Tensor) or not value.is_sure:
        return False
    # One without dimensions may be a length that was computed.
    return value.shape != SCALAR and not sources_of(value)


def given_of(node: Function, filled: Iterable[tuple[str, Value]]) -> frozenset[str]:
    """The optional parameters of a function among those that a call fills with something."""
    given = {name for name, value in filled if is_given(value)}
    return frozenset(each.name for each in optional_parameters(node) if each.name in given)


def checked_parameter(node: ast.expr) -> tuple[str, bool | None]:
    """A name that a condition may check, and what the condition is where that is given."""
    match node:
        case ast.Name(name):
            return name, True
        case ast.Compare(ast.Name(name), [operator], [other]) if _nothing(other) is not None:
            if isinstance(operator, (ast.Is, ast.Eq, ast.Lt, ast.LtE)):
                return name, False
            return name, True if isinstance(operator, _GREATER_OR_OTHER) else None
    return "", None
