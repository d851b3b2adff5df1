"""Tensors whose last dimension is taken as pairs: even and odd places, complex numbers.

All ways to take pairs apart are `every_second`, all ways to put them together `interleave`.
"""

from collections.abc import Sequence

from npulens.graphs.nodes import ATTRIBUTE, TUPLE, Graph, Node, is_constant, number, stripped

SLICE = "slice"
_LAST = (-1, 4)
_PAIRS_OF_FOUR = 3
"""Where the last two of five dimensions begin: attention heads have four before they are paired."""
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like"})
_SAME_SHAPE = frozenset({"cast", "contiguous"})


def flattened(graph: Graph, tensor: Node, start: Node, end: Node) -> Node | None:
    """`flatten` of the last two dimensions, where that puts pairs together."""
    first, last = number(start), number(end)
    if first == _PAIRS_OF_FOUR and last in _LAST:
        first, last = -2, -1
    if (first, last) != (-2, -1):
        return None
    return joined(graph, tensor)


def joined(graph: Graph, tensor: Node) -> Node | None:
    """The last two dimensions as one, for a stack of two or for real and imaginary parts.

    A cast of these parts is one of the result.
    """
    if tensor.operator == "cast":
        whole = joined(graph, tensor.operands[0])
        return None if whole is None else graph.node("cast", (whole, *tensor.operands[1:]))
    if tensor.operator == "view_as_real":
        return graph.node("interleave", (tensor,))
    parts = _parts_in_rows(tensor)
    if parts is not None:
        if parts.operator != "cast":
            return graph.node("cat_parts", (parts,))
        whole = graph.node("cat_parts", (parts.operands[0],))
        return graph.node("cast", (whole, *parts.operands[1:]))
    if tensor.operator == "stack":
        stacked, dimension = tensor.operands
        if stacked.operator == TUPLE and len(stacked.operands) == 2:
            if is_constant(dimension, -1):
                return graph.node("interleave", stacked.operands)
            if is_constant(dimension, -2):
                return graph.node("cat", (stacked, graph.constant(-1)))
    return None


def reshaped(graph: Graph, tensor: Node, sizes: Sequence[Node]) -> Node | None:
    """A stack of two that is reshaped to the shape of what its parts were taken from."""
    paired = stripped(tensor, _SAME_SHAPE).operator in ("stack", "view_as_real")
    if not paired and _parts_in_rows(tensor) is None:
        return None
    source = _source_of_parts(tensor)
    if source is None or not sizes:
        return None
    if len(sizes) == 1:
        whole = sizes[0].operator == "shape" and _is_same(sizes[0].operands[0], source)
        return joined(graph, tensor) if whole else None
    *leading, last = sizes
    ends = is_constant(last, -1) or last.operator == "size"
    keeps = keeps_leading(source, leading) or keeps_leading(tensor, leading, -2)
    return joined(graph, tensor) if ends and keeps else None


def keeps_leading(tensor: Node, leading: Sequence[Node], end: int = -1) -> bool:
    """Whether sizes are those of a tensor up to an end: `*x.shape[:-1]`, or each by itself."""
    if len(leading) == 1 and leading[0].operator == "spread":
        spread = leading[0].operands[0]
        if spread.operator != "index" or len(spread.operands) != 2:
            return False
        shape, part = spread.operands
        if shape.operator != "shape" or not _is_same(shape.operands[0], tensor):
            return False
        start, stop, step = part.operands if part.operator == SLICE else (part, part, part)
        return is_first(start) and is_constant(stop, end) and is_constant(step, None)
    if len(leading) < 2:
        return False
    own = tensor.operands[1:] if tensor.operator == "reshape" else ()
    whole = _uncut(tensor)
    rest = 0
    for position, size in enumerate(leading):
        if position < len(own) and size is own[position]:
            continue
        if is_constant(size, -1) and rest == 0 and position > 0:
            rest += 1
            continue
        if size.operator != "size" or not (
            _is_same(size.operands[0], tensor) or _is_same(size.operands[0], whole)
        ):
            return False
        if number(size.operands[1]) != position:
            return False
    return True


def _uncut(tensor: Node) -> Node:
    """What `x[..., :n]` was taken from, which has the same sizes but for the last."""
    tensor = stripped(tensor, _SAME_SHAPE)
    if tensor.operator == "index" and [n.operator for n in tensor.operands[1:]] == [
        "ellipsis",
        SLICE,
    ]:
        return tensor.operands[0]
    return tensor


def complex_pairs(graph: Graph, tensor: Node) -> Node | None:
    """`view_as_complex` of a tensor whose last dimension was cut into pairs, or into halves."""
    source = pairs_of(tensor)
    if source is not None:
        return graph.node("complex_pairs", (source,))
    halved = _halves_of(tensor)
    return None if halved is None else graph.node("complex_halves", (halved,))


def complex_number(graph: Graph, real: Node, imaginary: Node) -> Node | None:
    """`torch.complex` of the even and the odd places of a tensor, or of its halves.

    A cast of both is one of the result.
    """
    if (
        real.operator == imaginary.operator == "cast"
        and real.operands[1:] == imaginary.operands[1:]
    ):
        inner = complex_number(graph, real.operands[0], imaginary.operands[0])
        return None if inner is None else graph.node("cast", (inner, *real.operands[1:]))
    (of, *place), (of_too, *place_too) = (
        real.operands or (real,),
        imaginary.operands or (imaginary,),
    )
    is_in_order = len(place) > 0 and is_constant(place[0], 0) and is_constant(place_too[0], 1)
    if real.operator != imaginary.operator or of is not of_too or not is_in_order:
        return None
    if real.operator == "every_second":
        return graph.node("complex_pairs", (of,))
    is_halved = real.operator == "half" and is_constant(place[1], -1)
    return graph.node("complex_halves", (of,)) if is_halved else None


def real_and_imaginary(graph: Graph, parts: Node, dimension: Node, how: str) -> Node | None:
    """The parts of a complex tensor behind each other, as pairs or as halves."""
    if parts.operator != TUPLE or [part.label for part in parts.operands] != ["real", "imag"]:
        return None
    one, other = parts.operands
    is_whole = one.operator == other.operator == ATTRIBUTE and one.operands == other.operands
    if not is_whole or not is_constant(dimension, -1):
        return None
    real = graph.node("view_as_real", one.operands)
    return real if how == "stack" else graph.node("cat_parts", (real,))


def _halves_of(tensor: Node) -> Node | None:
    """What a tensor was before its last dimension was cut into `(2, d)` and these swapped."""
    tensor = stripped(tensor, _SAME_SHAPE)
    if tensor.operator == "stack" and is_constant(tensor.operands[1], -1):
        return _source_of_halves(tensor.operands[0])
    return rows_of(tensor.operands[0]) if _swaps_last_two(tensor) else None


def rows_of(tensor: Node) -> Node | None:
    """What a tensor of two rows was before its last dimension was cut into `(2, d)`."""
    tensor = stripped(tensor, _SAME_SHAPE)
    if tensor.operator != "reshape":
        return None
    source, *sizes = tensor.operands
    is_halved = len(sizes) > 2 and is_constant(sizes[-2], 2)
    return source if is_halved and keeps_leading(source, sizes[:-2]) else None


def _parts_in_rows(tensor: Node) -> Node | None:
    """Complex numbers as real ones, perhaps cast, whose real parts are put first of all."""
    if tensor.operator == "cat" and is_constant(tensor.operands[1], -2):
        parts = _source_of_halves(tensor.operands[0])
    else:
        parts = tensor.operands[0] if _swaps_last_two(tensor) else None
    if parts is not None and parts.operator == "contiguous":
        parts = parts.operands[0]
    inner = parts.operands[0] if parts is not None and parts.operator == "cast" else parts
    return parts if inner is not None and inner.operator == "view_as_real" else None


def _swaps_last_two(tensor: Node) -> bool:
    return tensor.operator == "transpose" and all(
        is_constant(dimension, number)
        for dimension, number in zip(tensor.operands[1:], (-2, -1), strict=True)
    )


def _source_of_halves(parts: Node) -> Node | None:
    """What two tensors are the first and the second half of."""
    if parts.operator == "chunk":
        whole, count, dimension = parts.operands
        return whole if is_constant(count, 2) and is_constant(dimension, -1) else None
    if parts.operator != TUPLE or [part.operator for part in parts.operands] != ["half", "half"]:
        return None
    (one, *first), (other, *second) = (part.operands for part in parts.operands)
    is_in_order = is_constant(first[0], 0) and is_constant(second[0], 1)
    return one if one is other and is_in_order and is_constant(first[1], -1) else None


def pairs_of(tensor: Node) -> Node | None:
    """What a tensor of pairs was before its last dimension was cut into `(d, 2)`."""
    tensor = stripped(tensor, {"contiguous"})
    if tensor.operator == "reshape":
        source, *sizes = tensor.operands
        if len(sizes) > 2 and is_constant(sizes[-1], 2) and keeps_leading(source, sizes[:-2]):
            return source
    if tensor.operator == "unflatten":
        source, _, into = tensor.operands
        if into.operator == TUPLE and len(into.operands) == 2 and is_constant(into.operands[1], 2):
            return source
    return None


def flipped(graph: Graph, tensor: Node, dimensions: Node) -> Node | None:
    """`flip` of the last dimension of pairs: each the other way round, as a stack of two."""
    if dimensions.operator == TUPLE and len(dimensions.operands) == 1:
        dimensions = dimensions.operands[0]
    source = pairs_of(tensor) if is_constant(dimensions, -1) else None
    if source is None:
        return None
    parts = [graph.node("every_second", (source, graph.constant(place))) for place in (1, 0)]
    return graph.node("stack", (graph.node(TUPLE, tuple(parts)), graph.constant(-1)))


def part_of_stack(tensor: Node, items: Sequence[Node]) -> int | None:
    """Which of two tensors that are stacked last of all `[..., 0]` or `[..., 1]` is."""
    if tensor.operator != "stack" or not is_constant(tensor.operands[1], -1):
        return None
    parts = tensor.operands[0]
    is_of_two = parts.operator == TUPLE and len(parts.operands) == 2
    if not is_of_two or len(items) != 2 or items[0].operator != "ellipsis":
        return None
    return next((part for part in (0, 1) if is_constant(items[1], part)), None)


def stored(graph: Graph, before: Node, items: Sequence[Node], value: Node) -> Node | None:
    """What a tensor holds after its even and its odd places, or both halves, were assigned.

    The result is cast to the type of the tensor that was written to. Of a stack of two, one may be
    assigned that is computed of these, of whose type it is.
    """
    part = part_of_stack(before, items)
    if part is not None:
        both = list(before.operands[0].operands)
        if not any(each is value or each in value.operands for each in both):
            return None
        both[part] = value
        return graph.node("stack", (graph.node(TUPLE, tuple(both)), before.operands[1]))
    after = graph.node("stored", (before, *items, value))
    if before.operator != "stored":
        return None
    created = stripped(before.operands[0], _SAME_SHAPE)
    if created.operator not in _LIKE:
        return None
    model = created.operands[0]
    source = pairs_of(stripped(model, _SAME_SHAPE))
    is_of_pairs = source is not None
    first, second = (_part_stored(node, is_of_pairs) for node in (before, after))
    if first is None or second is None or {first, second} != {0, 1}:
        return None
    parts = (before.operands[-1], value) if first == 0 else (value, before.operands[-1])
    if source is None:
        return graph.node("cast", (graph.node("interleave", parts), model))
    whole = graph.node("stack", (graph.node(TUPLE, parts), graph.constant(-1)))
    given = source.operands[1:] if source.operator == "cast" else (source,)
    return graph.node("cast", (whole, *given))


def _part_stored(node: Node, is_of_pairs: bool) -> int | None:
    """Whether the even places of the last dimension were assigned, or the odd.

    Of a tensor of pairs, whether the first of each was, or the second.
    """
    items = node.operands[1:-1]
    if len(items) != 2 or items[0].operator != "ellipsis":
        return None
    if is_of_pairs:
        return next((part for part in (0, 1) if is_constant(items[1], part)), None)
    if items[1].operator != SLICE:
        return None
    start, stop, step = items[1].operands
    if not (is_constant(step, 2) and is_constant(stop, None)):
        return None
    if is_constant(start, 1):
        return 1
    return 0 if is_first(start) else None


def _source_of_parts(tensor: Node) -> Node | None:
    """The tensor whose even and odd places are stacked, first found."""
    pending = list(tensor.operands)
    for _ in range(32):
        if not pending:
            break
        node = pending.pop()
        if node.operator in ("every_second", "half", "complex_pairs", "complex_halves"):
            return node.operands[0]
        pending += node.operands
    return None


def _is_same(one: Node, other: Node) -> bool:
    """Whether two tensors have one shape since they differ in type at most."""
    return stripped(one, _SAME_SHAPE) is stripped(other, _SAME_SHAPE)


def is_first(start: Node) -> bool:
    """Whether a slice starts with the first element."""
    return is_constant(start, None) or is_constant(start, 0)
