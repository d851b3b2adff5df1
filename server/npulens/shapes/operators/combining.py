"""Operators that compute element by element or put tensors together."""

from npulens.shapes.values.applied import Applied, Transfer, dim_of, shape_of
from npulens.shapes.values.shape_values import UNKNOWN, Items, Tensor, Value
from npulens.shapes.values.symbolic_dims import (
    ANY_LENGTH,
    ANY_SHAPE,
    Dim,
    Shape,
    broadcast,
    closed,
    opened,
)


def elementwise(call: Applied) -> Value:
    return call.result(broadcast(tensor.shape for tensor in call.tensors), call.kind)


def like_first(kind: str | None = None) -> Transfer:
    return lambda call: call.result(call.shape, call.kind if kind is None else kind)


def comparison(call: Applied) -> Value:
    return call.result(broadcast(tensor.shape for tensor in call.tensors), "bool")


def where(call: Applied) -> Value:
    chosen = call.get(1, "input")
    kind = chosen.kind if isinstance(chosen, Tensor) else ""
    return call.result(broadcast(tensor.shape for tensor in call.tensors), kind)


def joined_along(call: Applied) -> Value:
    parts, index = call.first, call.number(1, "dim", "axis", default=0)
    if not isinstance(parts, Items) or index is None:
        return call.result(opened(call.sources))
    tensors = [element for element in parts.parts if isinstance(element, Tensor)]
    if not tensors:
        return Tensor(opened(parts.sources))
    shapes = [tensor.shape for tensor in tensors]
    lengths = [shape.at(index) for shape in shapes]
    along = frozenset().union(*(dim.sources for dim in lengths))
    sources = parts.sources | along
    changing = [dim for dim in lengths if dim.sources]
    if len(changing) == 2 and changing[0].is_rest != changing[1].is_rest:
        sources = frozenset()  # filled up to a fixed length
    # What is not along the dimension is the same for all of them.
    best = max(shapes, key=lambda shape: (shape.rank is not None, len(shape.lead)))
    rest = frozenset().union(*(shape.sources for shape in shapes)) - along
    is_one = parts.elements is not None and len(parts.elements) == 1
    shape = best.with_dim(index, Dim(lengths[0].text if is_one else "?", sources))
    kinds = {tensor.kind for tensor in tensors}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return call.result(shape._replace(hidden=shape.hidden | rest) if rest else shape, kind)


def stacked(call: Applied) -> Value:
    parts, index = call.first, call.number(1, "dim", default=0)
    if not isinstance(parts, Items) or index is None:
        return call.result(opened(call.sources))
    shape = broadcast(tensor.shape for tensor in call.tensors)
    number = Dim("?" if parts.elements is None else str(len(parts.elements)), parts.sources)
    return call.result(shape.inserted(index, number))


def product(call: Applied) -> Value:
    """Matrices: the last dimension of the first is summed over."""
    first = call.shape
    second = shape_of(call.get(1, "other", "mat2", "weight") or UNKNOWN)
    if call.name == "linear":
        size = second.at(0) if not second.is_open else ANY_LENGTH
        return call.result(with_last(first, size))
    if call.name == "mm":
        return call.result(closed(first.at(0), second.at(1)))
    if call.name == "bmm" and not (first.hidden or second.hidden):
        batch = first.at(0) if first.at(0).text != "?" else second.at(0)
        return call.result(closed(batch, first.at(1), second.at(2)))
    if first.rank is None or second.rank is None or second.rank < 2 or first.rank < 2:
        kept = first.without(-1).sources | second.without(-2).sources
        if kept or not second.rank or second.rank < 2 or first.rank == 1:
            return call.result(opened(kept))
        return call.result(with_last(first, second.at(-1)) if second.rank == 2 else ANY_SHAPE)
    lead = broadcast([closed(*first.lead[:-2]), closed(*second.lead[:-2])]).lead
    return call.result(closed(*lead, first.at(-2), second.at(-1)))


def with_last(shape: Shape, size: Dim) -> Shape:
    """A shape whose last dimension has a size, also where nothing else is known."""
    if shape.is_open and not shape.tail:
        return shape._replace(tail=(size,)) if size.text != "?" else shape
    return shape.with_dim(-1, size)


def classes(call: Applied) -> Value:
    return call.result(call.shape.inserted(-1, dim_of(call.get(1, "num_classes"))), "int")


def multinomial(call: Applied) -> Value:
    return call.result(call.shape.with_dim(-1, dim_of(call.get(1, "num_samples"))), "int")


def padded_sequence(call: Applied) -> Value:
    """As long as the longest."""
    parts = call.first
    if not isinstance(parts, Items):
        return call.result(opened(call.sources))
    return call.result(Shape(hidden=shape_of(parts.each).sources | parts.sources))
