"""Parts of tensors: sizes, halves, slices, elements of what is split."""

from collections.abc import Sequence

from npulens.graphs.nodes import TABLE, TUPLE, Graph, Node, entry, is_constant, number
from npulens.graphs.pairs import (
    SLICE,
    is_first,
    keeps_leading,
    pairs_of,
    part_of_stack,
    rows_of,
)

ELLIPSIS = "ellipsis"


def element(graph: Graph, value: Node, index: int) -> Node:
    """`value[index]` of a Python sequence: a tuple, a shape, or what a tensor was split into."""
    if value.operator == TUPLE:
        if -len(value.operands) <= index < len(value.operands):
            return value.operands[index]
    elif value.operator == "shape":
        return graph.node("size", (value.operands[0], graph.constant(index)))
    elif value.operator == "chunk" and is_constant(value.operands[1], 2) and index in (0, 1):
        return half(graph, value.operands[0], index, value.operands[2])
    elif value.operator == "split" and index in (0, 1):
        tensor, length, dimension = value.operands
        if _is_half_of(length, tensor, dimension) or _are_two_halves(length):
            return half(graph, tensor, index, dimension)
    elif value.operator == "unbind":
        return _unbound(graph, value.operands[0], value.operands[1], index)
    return graph.node("element", (value, graph.constant(index)))


def unpacked(graph: Graph, value: Node, count: int) -> Node:
    """`value` where so many names take its elements: how many parts a split has is known then."""
    if value.operator == "split" and count == 2 and value.operands[1].operator != TUPLE:
        return graph.node("split", value.operands, "in two")
    return value


def half(graph: Graph, tensor: Node, index: int, dimension: Node) -> Node:
    """The first or second half along a dimension."""
    return graph.node("half", (tensor, graph.constant(index), dimension))


def subscript(graph: Graph, tensor: Node, items: Sequence[Node]) -> Node:
    """`tensor[items]`, with halves and every-second-element slices distinguished from others."""
    if not items:  # `x[()]`
        return graph.node("index", (tensor,))
    found = entry(tensor, items[0]) if tensor.operator == TABLE and len(items) == 1 else None
    if found is not None:
        return found
    if len(items) == 1:
        position = number(items[0])
        if isinstance(position, int) and tensor.operator in _SEQUENCES:
            return element(graph, tensor, position)
    place = part_of_stack(tensor, items)
    if place is not None:
        return tensor.operands[0].operands[place]
    part = _last_dimension_part(graph, tensor, items)
    if part is not None:
        return part
    widened = _unsqueezed(graph, tensor, items)
    if widened is not None:
        return widened
    if len(items) == _HEADS + 1 and all(map(_is_whole, items[:-1])):
        items = (graph.node(ELLIPSIS), items[-1])
    chosen = _only_element(tensor, items)
    if chosen is not None:
        return graph.node("squeeze", (tensor, chosen))
    pairs = _pairs_in_rows(graph, tensor, items)
    return pairs or graph.node("index", (tensor, *items))


def floor_divide(graph: Graph, left: Node, right: Node) -> Node:
    """`left // right`."""
    a, b = number(left), number(right)
    if a is not None and b:
        return graph.constant(a // b)
    return graph.node("floor_divide", (left, right))


_HEADS = 3
"""`x[:, :, :, ::2]` is taken for a part of the last dimension: attention heads have four."""
_SEQUENCES = frozenset({TUPLE, "shape", "chunk", "split", "unbind"})


def _unbound(graph: Graph, tensor: Node, dimension: Node, index: int) -> Node:
    """`x.reshape(*, d, 2).unbind(-1)` are the elements at even and at odd places."""
    place = graph.constant(index)
    if tensor.operator in ("reshape", "unflatten") and index in (0, 1):
        sizes = _sizes(tensor)
        source = tensor.operands[0]
        is_cut = bool(sizes) and is_constant(dimension, -1) and is_constant(sizes[-1], 2)
        if is_cut and pairs_of(tensor) is not None:
            return graph.node("every_second", (source, place))
        is_halved = len(sizes) > 1 and is_constant(dimension, -2) and is_constant(sizes[-2], 2)
        if is_halved and (tensor.operator != "reshape" or keeps_leading(source, sizes[:-2])):
            return half(graph, source, index, graph.constant(-1))
    return graph.node("element", (graph.node("unbind", (tensor, dimension)), place))


def _sizes(reshaped: Node) -> tuple[Node, ...]:
    sizes = reshaped.operands[1:] if reshaped.operator == "reshape" else reshaped.operands[2:]
    if len(sizes) == 1 and sizes[0].operator == TUPLE:
        return sizes[0].operands
    return sizes


def _last_dimension_part(graph: Graph, tensor: Node, items: Sequence[Node]) -> Node | None:
    """`x[..., : d // 2]`, `x[..., 0::2]`: parts of the last dimension."""
    *before, last = items
    if before and before[0].operator == ELLIPSIS and number(last) in (0, 1):
        source = pairs_of(tensor) if len(before) == 1 else None
        return source and graph.node("every_second", (source, last))
    if _is_whole(last) and len(before) == 2 and before[0].operator == ELLIPSIS:
        rows = rows_of(tensor) if number(before[1]) in (0, 1) else None
        return rows and graph.node("half", (rows, before[1], graph.constant(-1)))
    if last.operator != SLICE or not before:
        return None
    is_last = before[0].operator == ELLIPSIS and len(before) == 1
    if not is_last and not (len(before) == _HEADS and all(map(_is_whole, before))):
        return None
    start, stop, step = last.operands
    dimension = graph.constant(-1)
    if is_constant(step, 2) and is_constant(stop, None):
        for first, index in ((None, 0), (0, 0), (1, 1)):
            if is_constant(start, first):
                return graph.node("every_second", (tensor, graph.constant(index)))
    if not (is_constant(step, None) or is_constant(step, 1)):
        return None
    if is_first(start) and _is_half_of(stop, tensor, dimension):
        return half(graph, tensor, 0, dimension)
    if _ends(stop, tensor, dimension) and _is_half_of(start, tensor, dimension):
        return half(graph, tensor, 1, dimension)
    return None


def _ends(stop: Node, tensor: Node, dimension: Node) -> bool:
    return is_constant(stop, None) or (
        stop.operator == "size" and stop.operands == (tensor, dimension)
    )


def _is_half_of(length: Node, tensor: Node, dimension: Node) -> bool:
    """Whether a length is half the size of a dimension, which may be counted from either end."""
    whole: Node | None = None
    if length.operator == "floor_divide" and is_constant(length.operands[1], 2):
        whole = length.operands[0]
    elif length.operator == "multiply" and is_constant(length.operands[0], 0.5):
        whole = length.operands[1]
    if whole is None or whole.operator != "size" or whole.operands[0] is not tensor:
        return False
    counted, wanted = number(whole.operands[1]), number(dimension)
    return counted == wanted or (wanted == -1 and isinstance(counted, int) and counted >= 1)


def unsqueeze(graph: Graph, tensor: Node, dimension: Node) -> Node:
    """One more dimension of size 1; a reduction of just that dimension keeps it instead."""
    if tensor.operator in _REDUCTIONS:
        inner, reduced, keeps = tensor.operands
        if reduced is dimension and is_constant(keeps, False):
            return graph.node(tensor.operator, (inner, reduced, graph.constant(True)))
    return graph.node("unsqueeze", (tensor, dimension))


_REDUCTIONS = frozenset({"mean", "sum", "amax"})


def _are_two_halves(lengths: Node) -> bool:
    """Whether lengths are given for two parts, and are the same."""
    return (
        lengths.operator == TUPLE
        and len(lengths.operands) == 2
        and lengths.operands[0] is lengths.operands[1]
    )


def _unsqueezed(graph: Graph, tensor: Node, items: Sequence[Node]) -> Node | None:
    """`x[:, None]` and `x[..., None]` insert dimensions and do nothing else."""
    result = tensor
    last = items[-1]
    if items[0].operator == ELLIPSIS:
        if len(items) == 2 and is_constant(last, None):
            return unsqueeze(graph, tensor, graph.constant(-1))
        return None
    inserted = [position for position, item in enumerate(items) if is_constant(item, None)]
    others = [item for item in items if not is_constant(item, None)]
    if not inserted or any(item.operator != SLICE for item in others):
        return None
    while others and _is_whole(others[-1]):
        others.pop()
    if others:
        result = subscript(graph, tensor, others)
    for position in inserted:
        result = unsqueeze(graph, result, graph.constant(position))
    return result


def _only_element(tensor: Node, items: Sequence[Node]) -> Node | None:
    """The dimension that `x.gather(-1, places[..., None])[..., 0]` takes the only element of."""
    if tensor.operator != "gather" or not is_constant(items[-1], 0):
        return None
    index = tensor.operands[2]
    inserted = number(index.operands[1]) if index.operator == "unsqueeze" else None
    if len(items) == 2 and items[0].operator == ELLIPSIS:
        return index.operands[1] if inserted in (-1, 2) else None
    is_there = inserted == len(items) - 1 and all(map(_is_whole, items[:-1]))
    return index.operands[1] if is_there else None


def _pairs_in_rows(graph: Graph, tensor: Node, items: Sequence[Node]) -> Node | None:
    """`x.reshape(*x.shape[:-1], -1, 1, 2)[..., 0]`: even or odd places, each in a row."""
    if tensor.operator != "reshape" or len(items) != 2 or items[0].operator != ELLIPSIS:
        return None
    source, *sizes = tensor.operands
    ends = len(sizes) > 3 and is_constant(sizes[-1], 2) and is_constant(sizes[-2], 1)
    if not ends or number(items[1]) not in (0, 1) or not keeps_leading(source, sizes[:-3]):
        return None
    part = graph.node("every_second", (source, items[1]))
    return graph.node("unsqueeze", (part, graph.constant(-1)))


def _is_whole(item: Node) -> bool:
    if item.operator == ELLIPSIS:
        return False
    return item.operator == SLICE and all(is_constant(part, None) for part in item.operands)
