"""Products of matrices in one form: `einsum` and `baddbmm` too, numbers in front."""

from collections.abc import Sequence
from functools import partial, reduce

from npulens.graphs.algebra import add, multiply
from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, INPUT, Graph, Node, number
from npulens.graphs.permutations import permute, transpose
from npulens.graphs.ranks import know_rank
from npulens.graphs.scalars import Initial, is_scalar


def hoisted(graph: Graph, product: Node, initial: Initial) -> Node:
    """`(s * a) @ b` and `a @ (s * b).mT` as `s * (a @ b)`, for numbers `s`.

    An `a` that never has had a name is left as it is: it could not be written without the `s`.
    """
    if product.operator != "matmul":
        return product
    factors: list[Node] = []
    right = product.operands[1]
    if right.operator == "transpose" and [number(o) for o in right.operands[1:]] == [2, 3]:
        # What is multiplied after this swap has four dimensions, or it would be none of matrices.
        know_rank(right.operands[0], 4)
        right = transpose(graph, *right.operands)
        product = graph.node("matmul", (product.operands[0], right))
    left, right = (_without_factors(graph, o, initial, factors) for o in product.operands)
    result = graph.node("matmul", (left, right))
    if factors:
        result = multiply(graph, reduce(partial(multiply, graph), factors), result)
    return result


def _without_factors(graph: Graph, node: Node, initial: Initial, factors: list[Node]) -> Node:
    if node.operator == "transpose":
        inner = _without_factors(graph, node.operands[0], initial, factors)
        return transpose(graph, inner, node.operands[1], node.operands[2])
    while node.operator == "multiply":
        one, other = node.operands
        if is_scalar(one, initial) and _has_name(other):
            factor, rest = one, other
        elif is_scalar(other, initial) and _has_name(one):
            factor, rest = other, one
        else:
            break
        factors.append(factor)
        if node.rank is not None:
            know_rank(rest, node.rank)
        node = rest
    return node


def _has_name(node: Node) -> bool:
    if node.is_named or node.operator in (INPUT, ATTRIBUTE):
        return True
    return node.operator == "transpose" and _has_name(node.operands[0])


def batched(graph: Graph, left: Node, right: Node) -> Node:
    """`torch.bmm(left, right)`: both have three dimensions."""
    operands = []
    for node in (left, right):
        know_rank(node, 3)
        if node.operator == "transpose":
            inner, *dimensions = node.operands
            know_rank(inner, 3)
            node = transpose(graph, inner, *dimensions)
            know_rank(node, 3)
        operands.append(node)
    return graph.node("matmul", tuple(operands))


def batched_with_sum(
    graph: Graph, addend: Node, left: Node, right: Node, beta: Node, alpha: Node
) -> Node:
    """`torch.baddbmm(addend, left, right, beta, alpha)`; an addend times 0 is none."""
    product = multiply(graph, alpha, batched(graph, left, right))
    if beta.operator == CONSTANT and beta.value == 0:
        return product
    return add(graph, multiply(graph, beta, addend), product)


def einsum(graph: Graph, recipe: str, left: Node, right: Node) -> Node | None:
    """A contraction of two tensors over one axis, as a product of matrices between swaps.

    `None` for other contractions: of several axes, of none, without batch, with repeated letters.
    """
    given, _, wanted = recipe.replace(" ", "").replace("...", ".").partition("->")
    first, _, second = given.partition(",")
    if left is right and first == second and first[:-1] == wanted and len({*first}) > 1:
        squared = multiply(graph, left, right)
        return graph.node("sum", (squared, graph.constant(-1), graph.constant(False)))
    shared = _shared(graph, (list(first), list(second), list(wanted)), left, right)
    if shared is not None:
        return shared
    if not wanted or any(len(set(axes)) != len(axes) for axes in (first, second, wanted)):
        return None
    batch = [axis for axis in wanted if axis in first and axis in second]
    rows = [axis for axis in first if axis not in second]
    columns = [axis for axis in second if axis not in first]
    summed = [axis for axis in first if axis in second and axis not in wanted]
    if not (len(rows) == len(columns) == len(summed) == 1) or not batch or "," in second:
        return None
    if sorted([*batch, *rows, *columns]) != sorted(wanted):
        return None
    a = _ordered(graph, left, first, [*batch, *rows, *summed])
    b = _ordered(graph, right, second, [*batch, *summed, *columns])
    if a is None or b is None:
        return None
    return _ordered(graph, graph.node("matmul", (a, b)), [*batch, *rows, *columns], list(wanted))


def _shared(
    graph: Graph, axes: tuple[list[str], list[str], list[str]], left: Node, right: Node
) -> Node | None:
    """`bnhk,bmk->bnhm`: one matrix for all that has the same first axis."""
    first, second, wanted = axes
    if not (len(first) == len(wanted) == 4 and len(second) == 3 and len(set(first)) == 4):
        return None
    *rows, summed = first
    if "." in first or wanted[:3] != rows or wanted[3] in first:
        return None
    if second not in ([rows[0], summed, wanted[3]], [rows[0], wanted[3], summed]):
        return None
    know_rank(left, 4)
    know_rank(right, 3)
    if second[1] != summed:
        right = transpose(graph, right, graph.constant(1), graph.constant(2))
    return graph.node("shared_matmul", (left, right))


def _ordered(graph: Graph, tensor: Node, axes: Sequence[str], wanted: Sequence[str]) -> Node | None:
    """A tensor with its axes in another order; of `...` only what follows it can be moved."""
    if "." in axes:
        if axes[0] != "." or wanted[0] != ".":
            return None
        if list(axes) == list(wanted):
            return tensor
        is_swap = len(axes) == 3
        last = (graph.constant(-2), graph.constant(-1))
        return transpose(graph, tensor, *last) if is_swap else None
    know_rank(tensor, len(axes))
    order = [list(axes).index(axis) for axis in wanted]
    return permute(graph, tensor, [graph.constant(position) for position in order])
