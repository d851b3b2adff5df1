"""Conditions on several of a pattern's variables together, and those that ask the constructor."""

from collections.abc import Callable, Sequence

from npulens.fused.activations import may_be_silu
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, INPUT, LIBRARY, OPAQUE, TUPLE, Node, number
from npulens.graphs.pairs import SLICE

Relation = Callable[[Sequence[Node], Evaluator], bool]

_PRODUCTS = frozenset({"linear", "matmul", "einsum", "baddbmm"})
_PARTS = frozenset({"half", "element", "index"})
_LOOKED_THROUGH = frozenset({"cast", "contiguous", "dropout", "reshape", "transpose"})
_ONE_FACTOR_NAMES = ("scale", "mask", "weight", "shift", "alpha", "beta", "prob", "score", "coef")
"""Arguments with such names are broadcast."""


def _are_projections(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Two tensors of one size that one projection could give, or that one tensor holds.

    Then the copy that joins them can be saved. Arguments of a function count too: nothing is
    known of them but that they are multiplied.
    """
    one, other = (_stripped(node) for node in nodes)
    if one.operator != other.operator or one is other:
        return False
    if one.operator == INPUT:
        if one is not nodes[0] or other is not nodes[1]:
            return False  # a cast of an argument is the gate of a norm, not of a unit
        return not any(_is_one_factor(str(node.label)) for node in (one, other))
    if one.operator in _PRODUCTS:
        return one.operands[0] is other.operands[0]
    if one.operator == "apply":
        of_tensor = len(one.operands) > 1 and one.operands[1].operator != CONSTANT
        is_alike = one.operands[1:] == other.operands[1:]
        return of_tensor and is_alike and _give_one_size(one, other, evaluator)
    if one.operator in _PARTS and len(one.operands) == len(other.operands):
        return _are_parts(one, other, evaluator)
    return False


def _stripped(node: Node) -> Node:
    """A tensor without the bias that is added and what only changes its shape or type."""
    while True:
        if node.operator in _LOOKED_THROUGH:
            node = node.operands[0]
        elif node.operator == "add":
            terms = [term for term in node.operands if term.operator in _PRODUCTS]
            if len(terms) != 1:
                return node
            (node,) = terms
        else:
            return node


def _is_one_factor(name: str) -> bool:
    return any(word in name.lower() for word in _ONE_FACTOR_NAMES)


def _give_one_size(one: Node, other: Node, evaluator: Evaluator) -> bool:
    """Whether two modules give tensors of one size, as far as their constructors tell."""
    modules = [evaluator.initial(node.operands[0]) or node.operands[0] for node in (one, other)]
    first, second = modules
    if first is second:
        return False
    linear = [module for module in modules if _is_linear(module)]
    if len(linear) == 2:
        return len(first.operands) > 1 and first.operands[1] is second.operands[1]
    known = (ATTRIBUTE, INPUT, OPAQUE, "index", "apply", "element", "instance")
    return not linear and all(module.operator in known for module in modules)


def _is_linear(module: Node) -> bool:
    return isinstance(module.label, tuple) and module.label[0] == "torch.nn.Linear"


def _are_parts(one: Node, other: Node, evaluator: Evaluator) -> bool:
    """Parts of one tensor, cut alike; or first results of two projections."""
    tensor, *place = one.operands
    beside, *other_place = other.operands
    if tensor is not beside:
        # `gate, _ = self.gate_proj(x)`
        is_result = one.operator == "element" and place == other_place
        return is_result and _are_projections((tensor, beside), evaluator)
    if one.operator == "element" and tensor.operator == "split":
        lengths = tensor.operands[1].operands if tensor.operands[1].operator == TUPLE else ()
        at = [number(node) for node in (place[0], other_place[0])]
        if not lengths:
            return True  # the last may be shorter, but then their product fails
        return all(isinstance(i, int) and i < len(lengths) for i in at) and (
            lengths[int(at[0] or 0)] is lengths[int(at[1] or 0)]
        )
    if one.operator != "index":
        return tensor.operator in ("chunk", "unbind") or one.operator == "half"
    return not any(part.operator == SLICE and _steps(part) for part in (*place, *other_place))


def _steps(part: Node) -> bool:
    return part.operands[2].operator != CONSTANT or part.operands[2].value not in (None, 1)


def _is_activation(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    (node,) = nodes
    return node.operator != LIBRARY and may_be_silu(node, evaluator)


def _is_one_of_many(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether one of the values is an item of a sequence that a loop goes through."""
    return any(_is_item(node) for node in nodes)


def _is_item(node: Node) -> bool:
    """`experts[i]` or `i` of a loop over experts; for a module of many, what is in its place."""
    if node.operator in ("index", "element", "transpose", ATTRIBUTE):
        return any(_is_item(operand) for operand in node.operands)
    return node.operator == OPAQUE and isinstance(node.label, tuple) and node.label[0] == "item"


RELATIONS: dict[str, Relation] = {
    "activation": _is_activation,
    "one of many": _is_one_of_many,
    "projections": _are_projections,
}
