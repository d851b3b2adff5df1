"""Activation functions that code takes from a table by name, as Transformers does."""

from npulens.graphs.algebra import multiply
from npulens.graphs.nodes import CONSTANT, GLOBAL, LIBRARY, OPAQUE, Graph, Node

_TABLES = ("ACT2FN", "ACT2CLS")
_GETTERS = ("get_activation",)
_APPROXIMATIONS = {
    "gelu": "none",
    "gelu_python": "none",
    "gelu_new": "tanh",
    "gelu_fast": "tanh",
    "gelu_pytorch_tanh": "tanh",
    "gelu_python_tanh": "tanh",
}
_OF_ONE_OPERAND = {
    "silu": "silu",
    "swish": "silu",
    "mish": "mish",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}
_QUICK_GELU = 1.702


def chosen_name(function: Node) -> Node | None:
    """The key of `ACT2FN[key]` or `get_activation(key)`, `None` for any other value."""
    if function.operator == "index" and len(function.operands) == 2:
        table, key = function.operands
        return key if _last_name(table) in _TABLES else None
    if function.operator == OPAQUE and len(function.operands) == 2:
        getter, key = function.operands
        return key if _last_name(getter) in _GETTERS else None
    return None


def activated(graph: Graph, function: Node, tensor: Node) -> Node | None:
    """What a function from a table computes, if its name is written in the code and known."""
    key = chosen_name(function)
    if key is None or key.operator != CONSTANT:
        return None
    name = key.value
    if name in _APPROXIMATIONS:
        return graph.node("gelu", (tensor, graph.constant(_APPROXIMATIONS[str(name)])))
    if name in _OF_ONE_OPERAND:
        return graph.node(_OF_ONE_OPERAND[str(name)], (tensor,))
    if name == "quick_gelu":
        scaled = multiply(graph, graph.constant(_QUICK_GELU), tensor)
        return multiply(graph, tensor, graph.node("sigmoid", (scaled,)))
    return None


def _last_name(node: Node) -> str:
    return str(node.label).rpartition(".")[2] if node.operator in (LIBRARY, GLOBAL) else ""
