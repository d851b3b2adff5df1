"""Which values are plain numbers, and which are so low that softmax makes nothing of them."""

from collections.abc import Callable

from npulens.graphs.algebra import multiply
from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, INPUT, SELECT, Graph, Node, number

Initial = Callable[[Node], Node | None]
"""Tells what the constructor of a class assigned to an attribute of `self`."""

_MAX_DEPTH = 6
_LOWEST = -5000
"""Scores above may still count beside others; people write -1e4 and lower for a mask."""
_ZEROS = frozenset({"zeros", "zeros_like"})
_SUMS = frozenset({"add", "multiply", "power", "floor_divide", "or"})
_NAMES = ("scal", "head_dim", "head_size", "d_k", "dim_head", "norm_factor", "temperature")


def is_scalar(node: Node, initial: Initial, depth: int = 0) -> bool:
    """Whether a value is a number and no tensor, by what it is or, where it is given, its name."""
    if depth > _MAX_DEPTH:
        return False
    if node.operator == CONSTANT:
        return number(node) is not None or node.value is None
    if node.operator == "size":
        return True
    if node.operator in ("cast", "contiguous"):  # torch.tensor(...).to(...)
        return is_scalar(node.operands[0], initial, depth + 1)
    if node.operator in _SUMS:
        return all(is_scalar(operand, initial, depth + 1) for operand in node.operands)
    if node.operator == SELECT:
        return all(is_scalar(operand, initial, depth + 1) for operand in node.operands[1:])
    if node.operator == ATTRIBUTE:
        assigned = initial(node)
        if assigned is not None:
            return is_scalar(assigned, initial, depth + 1)
        if _is_given_to_constructor(node.operands[0]):
            return True  # a configuration holds sizes and factors
    if _is_given_to_constructor(node):
        return True  # and constructors take them
    if node.operator in (ATTRIBUTE, INPUT):
        name = str(node.label).rpartition(".")[2].lower()
        return "logit" not in name and any(part in name for part in _NAMES)
    return False


def _is_given_to_constructor(node: Node) -> bool:
    return node.operator == INPUT and str(node.label).startswith("__init__.")


def filled(graph: Graph, choice: Node, initial: Initial) -> Node:
    """`where(keep, x, -inf)` and `where(drop, -inf, x)` as the `masked_fill` they are."""
    condition, chosen, other = choice.operands
    if is_lowest(other, initial):
        drop = graph.node("logical_not", (condition,))
        return graph.node("masked_fill", (chosen, drop, other))
    if is_lowest(chosen, initial):
        return graph.node("masked_fill", (other, condition, chosen))
    return choice


def either_filled(
    graph: Graph, condition: Node, chosen: Node, other: Node, initial: Initial
) -> Node | None:
    """Scores with one mask or, in the other case, another: they are filled by either."""
    if not chosen.operator == other.operator == "masked_fill":
        return None
    (scores, mask, fill), (scores_too, otherwise, fill_too) = chosen.operands, other.operands
    if scores is not scores_too or not (is_lowest(fill, initial) and is_lowest(fill_too, initial)):
        return None
    either = graph.node(SELECT, (condition, mask, otherwise))
    return graph.node("masked_fill", (scores, either, fill))


def either_scaled(graph: Graph, condition: Node, chosen: Node, other: Node) -> Node | None:
    """A product of matrices that is scaled in one case: it is scaled by one in the other."""
    if other.operator == "matmul":
        factor = _factor_of(other, chosen)
        one = None if factor is None else (factor, graph.constant(1))
        product = other
    else:
        factor = _factor_of(chosen, other) if chosen.operator == "matmul" else None
        one = None if factor is None else (graph.constant(1), factor)
        product = chosen
    return None if one is None else multiply(graph, product, graph.node(SELECT, (condition, *one)))


def _factor_of(product: Node, scaled: Node) -> Node | None:
    """What a product is scaled by to come to another value."""
    if scaled.operator != "multiply" or product not in scaled.operands:
        return None
    return scaled.operands[scaled.operands[0] is product]


def filled_last(graph: Graph, product: Node, initial: Initial) -> Node:
    """Scores that are masked and then scaled, as ones that are scaled and then masked."""
    if product.operator == "multiply":
        for filled_first, factor in (product.operands, product.operands[::-1]):
            if filled_first.operator != "masked_fill" or not _is_positive(factor):
                continue
            scores, mask, fill = filled_first.operands
            if is_lowest(fill, initial):
                return graph.node("masked_fill", (multiply(graph, factor, scores), mask, fill))
    return product


def _is_positive(factor: Node) -> bool:
    """A number above zero, or a root or power of sizes."""
    amount = number(factor)
    return amount > 0 if amount is not None else factor.operator in ("power", "size")


def without_zeros(graph: Graph, total: Node, initial: Initial) -> Node:
    """`x + zeros.masked_fill(drop, -inf)` and `x + full(-inf).triu(1)` as a `masked_fill` of x."""
    if total.operator != "add":
        return total
    for added, other in (total.operands, total.operands[::-1]):
        if added.operator == "masked_fill" and is_lowest(added.operands[2], initial):
            if added.operands[0].operator in _ZEROS or number(added.operands[0]) == 0:
                return graph.node("masked_fill", (other, *added.operands[1:]))
        elif added.operator == "triu" and is_lowest(added.operands[0], initial):
            full, diagonal = added.operands
            drop = graph.node("triu", (graph.node("ones", full.operands), diagonal))
            return graph.node("masked_fill", (other, drop, full))
    return total


def is_lowest(node: Node, initial: Initial) -> bool:
    """Whether a value is minus infinity, the least number of a type, or as good as that."""
    if node.operator == CONSTANT:
        value = node.value
        if isinstance(value, str):
            return value.lower() in ("-inf", "-infinity")
        return isinstance(value, (int, float)) and value <= _LOWEST
    if node.operator == "multiply":
        sign, amount = number(node.operands[0]), node.operands[1]
        return sign is not None and sign < 0 and _is_greatest(amount)
    if node.operator == ATTRIBUTE:
        if node.label == "min":
            return _is_finfo(node.operands[0])
        assigned = initial(node)
        return assigned is not None and is_lowest(assigned, initial)
    if node.operator in ("tensor", "cast", "full", "full_like"):
        value_at = 1 if node.operator.startswith("full") else 0
        return len(node.operands) > value_at and is_lowest(node.operands[value_at], initial)
    return False


def _is_greatest(node: Node) -> bool:
    if node.operator == CONSTANT:
        if isinstance(node.value, (int, float)):
            return node.value >= -_LOWEST
        return str(node.value) in ("inf", "infinity")
    if node.operator == ATTRIBUTE and node.label == "max":
        return _is_finfo(node.operands[0])
    return str(node.label) in ("math.inf", "torch.inf", "numpy.inf")


def _is_finfo(node: Node) -> bool:
    return node.operator == "finfo" or "finfo" in str(node.label)
