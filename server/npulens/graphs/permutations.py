"""Orders of dimensions in one form: swaps, the last two counted from the end."""

from collections.abc import Sequence

from npulens.graphs.nodes import Graph, Node, number
from npulens.graphs.ranks import know_rank, rank_of


def transpose(graph: Graph, tensor: Node, first: Node, second: Node) -> Node:
    """`tensor.transpose(first, second)`; twice the same swap is none."""
    a, b = number(first), number(second)
    if not isinstance(a, int) or not isinstance(b, int):
        return graph.node("transpose", (tensor, first, second))
    rank = rank_of(tensor)
    if rank and max(a, b) < rank:
        a, b = a % rank, b % rank
        if {a, b} == {rank - 2, rank - 1}:
            a, b = -2, -1
    if a == b:
        return tensor
    swapped = (graph.constant(min(a, b)), graph.constant(max(a, b)))
    if tensor.operator == "transpose" and tensor.operands[1:] == swapped:
        return tensor.operands[0]
    return graph.node("transpose", (tensor, *swapped))


def permute(graph: Graph, tensor: Node, dimensions: Sequence[Node]) -> Node:
    """`tensor.permute(*dimensions)`: a swap, two swaps of which one is of the last two, or itself.

    As a side effect the rank of the tensor is known.
    """
    numbers = [number(dimension) for dimension in dimensions]
    count = len(numbers)
    order = [n % count for n in numbers if isinstance(n, int)]
    if sorted(order) != list(range(count)) or count < 2:
        return graph.node("permute", (tensor, *dimensions))
    know_rank(tensor, count)
    if order == list(range(count)):
        return tensor
    swap = _swap(order)
    if swap is not None:
        return _swapped(graph, tensor, swap)
    *leading, last, other = order
    swap = _swap([*leading, other, last])
    if swap is not None:
        inner = _swapped(graph, tensor, swap)
        return _swapped(graph, inner, (count - 2, count - 1))
    return graph.node("permute", (tensor, *map(graph.constant, order)))


def _swap(order: Sequence[int]) -> tuple[int, int] | None:
    """The two dimensions that an order exchanges, if that is all it does."""
    moved = [position for position, source in enumerate(order) if position != source]
    return (moved[0], moved[1]) if len(moved) == 2 else None


def _swapped(graph: Graph, tensor: Node, swap: tuple[int, int]) -> Node:
    return transpose(graph, tensor, *map(graph.constant, swap))
