"""Operators that compute element by element or put tensors together."""

from npulens.shapes.values.applied import Applied, Transfer, dim_of, shape_of
from npulens.shapes.values.shape_values import UNKNOWN, Items, Number, Tensor, Value
from npulens.shapes.values.symbolic_dims import Dim, Shape, broadcast, closed, opened


def elementwise(call: Applied) -> Value:
    first = call.first
    kind = first.kind if isinstance(first, Tensor) else ""
    return call.result(broadcast(tensor.shape for tensor in call.tensors), kind)


def like_first(kind: str | None = None) -> Transfer:
    def transfer(call: Applied) -> Value:
        first = call.first
        own = first.kind if isinstance(first, Tensor) else ""
        return call.result(shape_of(first), own if kind is None else kind)

    return transfer


def comparison(call: Applied) -> Value:
    return call.result(broadcast(tensor.shape for tensor in call.tensors), "bool")


def where(call: Applied) -> Value:
    chosen = call.get(1, "input")
    kind = chosen.kind if isinstance(chosen, Tensor) else ""
    return call.result(broadcast(tensor.shape for tensor in call.tensors), kind)


def joined_along(call: Applied) -> Value:
    parts, over = call.first, call.get(1, "dim", "axis")
    index = 0 if over is None else over.value if isinstance(over, Number) else None
    if not isinstance(parts, Items) or index is None:
        return call.result(opened(call.sources))
    elements = parts.elements if parts.elements is not None else (parts.each,)
    shapes = [shape_of(element) for element in elements if isinstance(element, Tensor)]
    if not shapes:
        return Tensor(opened(parts.sources))
    lengths = [shape.at(index) for shape in shapes]
    sources = parts.sources.union(*(dim.sources for dim in lengths))
    changing = [dim for dim in lengths if dim.sources]
    if len(changing) == 2 and changing[0].is_rest != changing[1].is_rest:
        sources = frozenset()  # filled up to a fixed length
    # What is not along the dimension is the same for all of them.
    best = max(shapes, key=lambda shape: (shape.rank is not None, len(shape.lead)))
    rest = frozenset().union(*(s.sources for s in shapes)) - frozenset().union(
        *(dim.sources for dim in lengths)
    )
    text = lengths[0].text if len(elements) == 1 and parts.elements is not None else "?"
    shape = best.with_dim(index, Dim(text, sources))
    kinds = {element.kind for element in elements if isinstance(element, Tensor)}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return call.result(shape._replace(hidden=shape.hidden | rest) if rest else shape, kind)


def stacked(call: Applied) -> Value:
    parts, over = call.first, call.get(1, "dim")
    index = 0 if over is None else over.value if isinstance(over, Number) else None
    if not isinstance(parts, Items) or index is None:
        return call.result(opened(call.sources))
    shape = broadcast(tensor.shape for tensor in call.tensors)
    number = Dim("?" if parts.elements is None else str(len(parts.elements)), parts.sources)
    return call.result(shape.inserted(index, number))


def product(call: Applied) -> Value:
    """Matrices: the last dimension of the first is summed over."""
    first, second = (
        shape_of(call.first),
        shape_of(call.get(1, "other", "mat2", "weight") or UNKNOWN),
    )
    if call.name == "linear":
        return call.result(first.with_dim(-1, second.at(0)))
    if first.rank is None or second.rank is None or second.rank < 2 or first.rank < 2:
        kept = first.without(-1).sources | second.without(-2).sources
        return call.result(opened(kept))
    lead = broadcast([closed(*first.lead[:-2]), closed(*second.lead[:-2])]).lead
    return call.result(closed(*lead, first.at(-2), second.at(-1)))


def classes(call: Applied) -> Value:
    return call.result(shape_of(call.first).inserted(-1, dim_of(call.get(1, "num_classes"))), "int")


def multinomial(call: Applied) -> Value:
    return call.result(shape_of(call.first).with_dim(-1, dim_of(call.get(1, "num_samples"))), "int")


def padded_sequence(call: Applied) -> Value:
    """As long as the longest."""
    parts = call.first
    if not isinstance(parts, Items):
        return call.result(opened(call.sources))
    return call.result(closed_sequence(parts))


def closed_sequence(parts: Items) -> Shape:
    each = shape_of(parts.each)
    return Shape(hidden=each.sources | parts.sources)
