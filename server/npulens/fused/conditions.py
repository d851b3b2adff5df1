"""Conditions that a pattern file may put on what its variables stand for."""

from collections.abc import Callable

from npulens.fused.masks import is_causal, is_causal_at_end, is_float_mask
from npulens.graphs.expressions import LIBRARY
from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, INPUT, Node, number
from npulens.graphs.ranks import rank_of
from npulens.graphs.scalars import Initial, is_lowest, is_scalar

_GAIN_NAMES = ("weight", "gamma", "scale", "gain", "g")


def holds(name: str, node: Node, initial: Initial) -> bool:
    """Whether a condition holds for what a variable stands for.

    Raises:
        KeyError: There is no condition of this name.
    """
    return _CONDITIONS[name](node, initial)


def known_conditions() -> frozenset[str]:
    """The names of all conditions."""
    return frozenset(_CONDITIONS)


def _is_parameter(node: Node, initial: Initial) -> bool:
    """A parameter of the module or an argument named like one; also such a one plus 1."""
    if node.operator == "cast":
        return _is_parameter(node.operands[0], initial)
    if node.operator == "add" and number(node.operands[0]) is not None:
        return _is_parameter(node.operands[1], initial)
    if node.operator == "add" and number(node.operands[1]) is not None:
        return _is_parameter(node.operands[0], initial)
    if node.operator == ATTRIBUTE:
        assigned = initial(node)
        if assigned is not None:
            return assigned.operator == "parameter"
        return _sounds_like_gain(str(node.label))
    return node.operator == INPUT and _sounds_like_gain(str(node.label))


def _sounds_like_gain(name: str) -> bool:
    name = name.lower()
    return name in _GAIN_NAMES or any(word in name for word in ("weight", "gamma", "gain"))


def _is_number(node: Node, initial: Initial) -> bool:
    """A number: a constant, an attribute that is no parameter, an argument, a machine epsilon."""
    if node.operator == CONSTANT:
        return number(node) is not None
    if node.operator == ATTRIBUTE:
        assigned = initial(node)
        return assigned is None or assigned.operator in (CONSTANT, INPUT, ATTRIBUTE, "power")
    return node.operator == INPUT


def _is_activation(node: Node, initial: Initial) -> bool:
    """A function taken from the configuration, of which SiLU may be one."""
    assigned = initial(node) or node
    if assigned.operator == "index":
        table = assigned.operands[0]
        return "act" in str(table.label).lower()
    named = str(node.label).lower() if node.operator in (ATTRIBUTE, INPUT) else ""
    return "act" in named and assigned.operator not in ("instance", LIBRARY)


def _is_tensor(node: Node, initial: Initial) -> bool:
    """Something that is not known to be a number, a string or `None`."""
    return node.operator != CONSTANT


def _may_have_four_dimensions(node: Node, initial: Initial) -> bool:
    return rank_of(node) in (None, 4)


def _has_three_dimensions(node: Node, initial: Initial) -> bool:
    return rank_of(node) == 3


_CONDITIONS: dict[str, Callable[[Node, Initial], bool]] = {
    "parameter": _is_parameter,
    "number": _is_number,
    "activation": _is_activation,
    "tensor": _is_tensor,
    "scalar": is_scalar,
    "lowest": is_lowest,
    "causal": is_causal,
    "causal_at_end": is_causal_at_end,
    "float_mask": is_float_mask,
    "four_dimensions": _may_have_four_dimensions,
    "three_dimensions": _has_three_dimensions,
}
