"""Tells which activation a module may be built with: what the code around it says."""

import ast

from npulens.graphs.activations import chosen_name
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    GLOBAL,
    INPUT,
    LIBRARY,
    OPAQUE,
    SELECT,
    Node,
    reachable,
)

_SILU = ("silu", "swish")
_OTHERS = ("gelu", "geglu", "relu", "reglu", "sigmoid", "tanh")
_MAX_DEPTH = 4


def may_be_silu(function: Node, evaluator: Evaluator) -> bool:
    """Whether a function is an activation that is configured, and SiLU by all that is known.

    A default that stands in the file decides; where there is none, a name with `act` in it is
    taken for one that may be SiLU.
    """
    known = evaluator.initial(function) or function
    if known is not function and known.operator != OPAQUE:
        return _may_be(known, evaluator, _MAX_DEPTH)
    if known.operator == OPAQUE and known.operands:
        return _may_be(known, evaluator, _MAX_DEPTH)
    return function.operator in (ATTRIBUTE, INPUT) and _sounds(str(function.label))


def names_another(place: ast.AST) -> bool:
    """Whether code calls what it multiplies by another activation: `hidden_gelu * hidden`."""
    names = (node.id.lower() for node in ast.walk(place) if isinstance(node, ast.Name))
    return any(word in name for name in names for word in _OTHERS)


def _may_be(known: Node, evaluator: Evaluator, depth: int) -> bool:
    """For what a constructor assigned."""
    if depth == 0:
        return False
    key = chosen_name(known)
    if key is not None:
        return _key_may_be(key, evaluator)
    if known.operator == SELECT:
        return any(_may_be(part, evaluator, depth - 1) for part in known.operands[1:])
    if known.operator == INPUT:
        default = evaluator.default(known)
        if default is None:
            return _sounds(str(known.label))
        is_left_open = default.operator == CONSTANT and default.value is None
        return is_left_open or _is_silu(default)
    if known.operator == "apply":
        return _may_be(known.operands[0], evaluator, depth - 1)
    if known.operator == ATTRIBUTE:
        return _sounds(str(known.label))
    if known.operator in ("index", OPAQUE) and known.operands:
        return _is_silu(known.operands[0]) or _comes_from_table(known, evaluator)
    return False


def _comes_from_table(known: Node, evaluator: Evaluator) -> bool:
    """`ACTIVATIONS[config.activation]`, `make_activation(name)`."""
    table, *keys = known.operands
    name = str(table.label).rpartition(".")[2]
    is_class = known.operator == OPAQUE and name[:1].isupper()
    if is_class or not _sounds(name) or not keys:
        return False
    return _key_may_be(keys[0], evaluator)


def _key_may_be(key: Node, evaluator: Evaluator) -> bool:
    written = evaluator.default(key) or key
    if written.operator != CONSTANT:
        return True
    return written.value is None or str(written.value).lower() in _SILU


def _is_silu(value: Node) -> bool:
    """A function or class whose name says so."""
    names = (
        str(node.label[0] if isinstance(node.label, tuple) else node.label)
        for node in reachable(value)
        if node.operator in (LIBRARY, GLOBAL, "module", CONSTANT)
    )
    return any(word in name.lower() for name in names for word in _SILU)


def _sounds(name: str) -> bool:
    return "act" in name.lower().rpartition(".")[2]
