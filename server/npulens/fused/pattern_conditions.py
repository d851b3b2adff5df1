"""Conditions that a pattern file may put on what its variables represent."""

from collections.abc import Callable

from npulens.fused.attention_parts import adds_a_product, attends, changes_weights
from npulens.fused.masks import diagonal, is_float_mask, is_learned_bias
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    GLOBAL,
    INPUT,
    OPAQUE,
    SELECT,
    TUPLE,
    Node,
    is_constant,
    number,
    stripped,
)
from npulens.graphs.ranks import rank_of
from npulens.graphs.scalars import Initial, is_lowest, is_scalar

_GAIN_NAMES = ("weight", "gamma", "scale", "gain", "g")


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
        if assigned is not None and assigned.operator not in (OPAQUE, SELECT):
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
        return assigned is None or assigned.operator not in _NO_NUMBERS
    return node.operator in (INPUT, GLOBAL, "power", "size")


_NO_NUMBERS = frozenset({"parameter", "instance", "module", "sequential", "apply"})
_CREATED = frozenset({"ones", "zeros", "empty", "full", "tensor"})


def _is_row(node: Node, initial: Initial) -> bool:
    """Not known to have another shape than one row: no single number, no further dimensions."""
    while node.operator in ("cast", "add"):
        node = next(part for part in node.operands if number(part) is None)
    assigned = initial(node)
    if assigned is None or assigned.operator != "parameter":
        return True
    created = assigned.operands[0]
    while created.operator == "multiply":
        created = created.operands[1]
    if created.operator not in _CREATED:
        return True
    assert isinstance(created.label, tuple)
    sizes = created.operands[: len(created.operands) - len(created.label)]
    if sizes and (sizes[0].operator == TUPLE or created.operator == "full"):
        sizes = sizes[0].operands
    if not sizes or is_constant(sizes[0], 1):
        return False
    return created.operator != "tensor" and not is_constant(sizes[-1], 1)


def _is_not_centred(node: Node, initial: Initial) -> bool:
    """No mean was subtracted: what is normalised then is a LayerNorm, or nearly one."""
    node = stripped(node, {"cast", "contiguous"})
    if node.operator != "add":
        return True
    return not any(part.operator == "mean" for term in node.operands for part in _factors(term))


def _factors(node: Node) -> tuple[Node, ...]:
    node = stripped(node, {"cast"})
    return node.operands if node.operator == "multiply" else (node,)


def _is_not_last(node: Node, initial: Initial) -> bool:
    """Dimensions that are written down, and are not just the last."""
    if node.operator == TUPLE:
        return all(number(part) is not None for part in node.operands)
    return number(node) is not None and not is_constant(node, -1)


def _is_half(node: Node, initial: Initial) -> bool:
    """Half of something, by how it is computed or by its name; not of the size of a tensor.

    Halves of the tensor's own size are known without this condition.
    """
    if node.operator == "floor_divide" and number(node.operands[1]) == 2:
        return node.operands[0].operator != "size"
    if node.operator not in (ATTRIBUTE, INPUT):
        return False
    assigned = initial(node)
    return "half" in str(node.label).lower() or (
        assigned is not None and assigned.operator == "floor_divide" and _is_half(assigned, initial)
    )


_DEFAULT_INDEX = -100
"""Of the target that losses of PyTorch ignore."""
_SPREADING = frozenset({"scatter", "scatter_", "one_hot"})
_MOST_PARTS = 60


def _spreads_targets(node: Node, initial: Initial) -> bool:
    """Rows with one value at the target of each, and another everywhere else.

    What comes out of a softmax, as what a teacher says, is none.
    """
    pending, seen, is_spread = [node], 0, False
    while pending and seen < _MOST_PARTS:
        part = pending.pop()
        seen += 1
        if part.operator == "softmax":
            return False
        name = part.operator if part.label is None else str(part.label).rpartition(".")[2]
        is_spread |= name in _SPREADING
        pending.extend(part.operands)
    return is_spread


CONDITIONS: dict[str, Callable[[Node, Initial], bool]] = {
    "parameter": _is_parameter,
    "number": _is_number,
    "tensor": lambda node, initial: node.operator != CONSTANT,
    "row": _is_row,
    "not_row": lambda node, initial: not _is_row(node, initial),
    "not_centred": _is_not_centred,
    "not_last": _is_not_last,
    # Neither the subtracted part of a difference nor a multiple.
    "not_negative": lambda node, initial: (
        node.operator != "multiply" or number(node.operands[0]) is None
    ),
    "half": _is_half,
    # Four dimensions, three for packed tokens, or a number that is not known.
    "heads": lambda node, initial: (rank_of(node) or None) in (None, 3, 4),
    "scalar": is_scalar,
    "lowest": is_lowest,
    "causal": lambda node, initial: diagonal(node, initial) == "start",
    "causal_at_end": lambda node, initial: diagonal(node, initial) == "end",
    "float_mask": is_float_mask,
    "learned_bias": is_learned_bias,
    "not_default_index": lambda node, initial: number(node) != _DEFAULT_INDEX,
    "spreads_targets": _spreads_targets,
    # Of tensors of two or three dimensions, or any.
    "may_be_last": lambda node, initial: number(node) in (-1, 1, 2),
    "third": lambda node, initial: number(node) == 2,
    # Two dimensions alone: what is indexed by rows and columns has its classes in the second.
    "may_be_last_of_two": lambda node, initial: number(node) in (-1, 1),
    "may_be_last_or_none": lambda node, initial: (
        number(node) in (-1, 1, 2) or is_constant(node, None)
    ),
    "attends": attends,
    "adds_a_product": adds_a_product,
    "changes_weights": changes_weights,
    "four_dimensions": lambda node, initial: rank_of(node) in (None, 4),
    "not_the_rest": lambda node, initial: number(node) != -1,
    "shows_four_dimensions": lambda node, initial: rank_of(node) == 4,
    "three_dimensions": lambda node, initial: rank_of(node) == 3,
}
