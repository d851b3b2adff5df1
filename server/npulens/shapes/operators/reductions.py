"""Operators that make dimensions shorter or take them away."""

from npulens.shapes.operators.combining import elementwise
from npulens.shapes.values.applied import Applied, Transfer, dim_of
from npulens.shapes.values.shape_values import (
    Foreign,
    Items,
    Number,
    Tensor,
    Value,
    is_on,
    items_of,
)
from npulens.shapes.values.symbolic_dims import (
    ANY_LENGTH,
    ONE,
    SCALAR,
    Dim,
    Shape,
    opened,
)

_COUNTING = frozenset({"sum", "nansum", "norm", "prod", "count_nonzero"})


def reduced(shape: Shape, over: Value | None, keeps: bool) -> Shape:
    """A shape without the dimensions that are reduced; all of them if `over` is `None`."""
    if over is None:
        return SCALAR
    parts = over.elements if isinstance(over, Items) else (over,)
    numbers = [part.value if isinstance(part, Number) else None for part in parts or (None,)]
    if None in numbers:
        return opened(shape.sources)
    indices = [number for number in numbers if number is not None]
    rank = shape.rank
    if rank is not None:
        indices = [index % rank if rank else 0 for index in indices]
    # From behind, so that the places of the others stay.
    for index in sorted(indices, key=lambda i: (i < 0, -abs(i))):
        shape = shape.with_dim(index, ONE) if keeps else shape.without(index)
    return shape


def reduction(kind: str | None, at: int = 1) -> Transfer:
    def transfer(call: Applied) -> Value:
        over = call.get(at, "dim", "axis")
        if isinstance(over, Tensor):
            return elementwise(call)  # torch.max(a, b)
        if isinstance(over, Foreign):
            over = None
        shape = reduced(call.shape, over, is_on(call.get(at + 1, "keepdim", "keepdims")))
        own = "int" if call.kind == "bool" else call.kind
        result = call.result(shape, own if kind is None else kind)
        # How much a sum of ones is depends on how many there are.
        counts = call.name in _COUNTING and any(dim.text == "?" for dim in _known(call.shape))
        return result._replace(is_fixed=False) if counts else result

    return transfer


def _known(shape: Shape) -> tuple[Dim, ...]:
    """The dimensions of a shape, with one that is not known for those that may be more."""
    return (*shape.lead, ANY_LENGTH) if shape.is_open else shape.lead


def with_indices(call: Applied) -> Value:
    """`max`, `min`, `median`: with a dimension also the indices."""
    if call.get(1, "dim", "axis") is None or isinstance(call.get(1, "dim"), Tensor):
        return reduction(None)(call)
    values = reduction(None)(call)
    assert isinstance(values, Tensor)
    return items_of((values, values._replace(kind="int")))


def sorted_pair(call: Applied) -> Value:
    values = call.result(call.shape, call.kind)
    return items_of((values, values._replace(kind="int")))


def topk(call: Applied) -> Value:
    index = call.number(2, "dim")
    shape = call.shape.with_dim(-1 if index is None else index, dim_of(call.get(1, "k")))
    values = call.result(shape, call.kind)
    return items_of((values, values._replace(kind="int")))


def loss(call: Applied) -> Value:
    reduction = call.keywords.get("reduction")
    if reduction is None or reduction in (Foreign("mean"), Foreign("sum")):
        return call.result(SCALAR, "float")
    return call.result(opened(call.sources), "float")
