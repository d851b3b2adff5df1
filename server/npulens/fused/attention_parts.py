"""What of attention is in a computation that is not the attention of an operator.

Weights come from a softmax of scores, scores from a product of two tensors. On the way both may be
scaled, masked, cast, put in another order, or changed as no operator does.
"""

from collections.abc import Iterator

from npulens.graphs.nodes import (
    ATTRIBUTE,
    INPUT,
    LIBRARY,
    OPAQUE,
    SELECT,
    Node,
    number,
    stripped,
    trait,
)
from npulens.graphs.scalars import Initial

_MAX_NODES = 60
_MAX_CHOICES = 4
_PRODUCTS = frozenset({"matmul", "einsum", "shared_matmul", "baddbmm"})
_ORDERS = frozenset({"reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand"})
_COPIES = frozenset({"cast", "contiguous", "detach", "stored", "index", "flatten", "unflatten"})
_BOTH = frozenset({"add", "multiply"})
_FIRST = _ORDERS | _COPIES | {"masked_fill", "clamp", "tanh", "dropout", "normalize", "roll"}
_SAME = frozenset({"cast", "contiguous", "dropout", "detach"})
_PLAIN = _SAME | _ORDERS
_NOT_OF_KEYS = (-2, -3, -4, 0)
"""Dimensions of weights that are multiplied as they are; keys are the last."""
_SOFTMAX = trait("softmax")
_PRODUCT = trait("matmul")


def attends(weights: Node, initial: Initial) -> bool:
    """Whether weights come from a softmax of scores, over keys."""
    return any(
        _are_scores(softmax.operands[0], initial)
        for softmax in _softmaxes(weights)
        if not (number(softmax.operands[1]) in _NOT_OF_KEYS and softmax is stripped(weights, _SAME))
    )


def adds_a_product(weights: Node, initial: Initial) -> bool:
    """Whether these scores are a sum of two products: of keys, and of positions."""
    return any(
        _is_sum_of_products(node, initial)
        for softmax in _softmaxes(weights)
        for node in _sources(softmax.operands[0])
    )


def changes_weights(weights: Node, initial: Initial) -> bool:
    """Whether what softmax gives is masked, projected or added to before it is used."""
    return _is_changed(weights) and attends(weights, initial)


def _is_changed(weights: Node, depth: int = 0) -> bool:
    while weights.operator in _PLAIN:
        weights = weights.operands[0]
    if weights.operator == SELECT and depth < _MAX_CHOICES:
        return any(_is_changed(arm, depth + 1) for arm in weights.operands[1:])
    return weights.operator != "softmax"


def _softmaxes(weights: Node) -> Iterator[Node]:
    if weights.traits & _SOFTMAX:
        yield from (node for node in _sources(weights, True) if node.operator == "softmax")


def _are_scores(node: Node, initial: Initial) -> bool:
    return any(_is_product_of_two(each, initial) for each in _sources(node))


def _is_sum_of_products(node: Node, initial: Initial) -> bool:
    """`q @ k.mT + shifted(q @ p.mT)`: what shifts the second need not be known.

    Scores that are taken from their own maximum are no such sum.
    """
    if node.operator != "add":
        return False
    one, other = (
        {each for each in _sources(term, True) if _is_product_of_two(each, initial)}
        for term in node.operands
    )
    return bool(one and other) and one != other


def _sources(node: Node, with_functions: bool = False) -> Iterator[Node]:
    """A tensor and those that it is made of place by place, down to products and softmax."""
    pending, seen = [node], {node.serial}
    while pending and len(seen) < _MAX_NODES:
        current = pending.pop()
        yield current
        for operand in _passed(current, with_functions):
            if operand.serial not in seen:
                seen.add(operand.serial)
                pending.append(operand)


def _passed(node: Node, with_functions: bool) -> tuple[Node, ...]:
    operator, operands = node.operator, node.operands
    if operator in _FIRST:
        return operands[:1]
    if operator in _BOTH:
        return operands
    if operator in (SELECT, "where"):
        return operands[1:]
    if operator == "cat":
        return operands[0].operands
    if operator == "instance" and "torch.nn.functional." in str(node.label):
        return operands[:1]
    if operator in ("apply", OPAQUE) and (with_functions or _is_of_library(node)):
        return operands[1:]
    if operator == "apply" and len(operands) == 2 and _is_of_keys(operands[1]):
        return operands[1:]
    return ()


def _is_of_keys(node: Node) -> bool:
    """Whether a tensor is `q @ k.transpose(-2, -1)`, in another order and scaled perhaps."""
    while node.operator in _ORDERS | _COPIES | {"multiply"}:
        is_last = node.operator == "multiply" and node.operands[1].traits & _PRODUCT
        node = node.operands[bool(is_last)]
    if node.operator == "add":
        return any(map(_is_of_keys, node.operands))
    return node.operator in _PRODUCTS and any(o.operator == "transpose" for o in node.operands)


def _is_of_library(node: Node) -> bool:
    """A function of a library that has no name here: `torch.nan_to_num(scores)`."""
    return node.operator == OPAQUE and bool(node.operands) and node.operands[0].operator == LIBRARY


def _is_product_of_two(node: Node, initial: Initial) -> bool:
    """Whether a product is of two tensors that are computed, and not of one with a parameter."""
    if node.operator not in _PRODUCTS:
        return False
    factors = [o for o in node.operands if o.operator != "constant"]
    return len(factors) > 1 and not any(_is_parameter(factor, initial) for factor in factors)


def _is_parameter(node: Node, initial: Initial) -> bool:
    while node.operator in _ORDERS | _COPIES:
        node = node.operands[0]
    if node.operator != ATTRIBUTE:
        return False
    assigned = initial(node)
    return assigned is None or assigned.operator != INPUT
