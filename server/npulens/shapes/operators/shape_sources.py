"""What the operators of the tables return, and which of their calls are meant."""

from npulens.catalog.tables import OperatorEntry, When
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import (
    FOREIGN,
    Items,
    Number,
    Tensor,
    Value,
    is_on,
    is_on_host,
    items_of,
)
from npulens.shapes.values.symbolic_dims import SCALAR, Dim, Shape, Sources, closed, opened

_SIZES = ("size", "num_nodes", "dim_size", "batch_size", "ptr", "out")
"""What else the argument is called that gives a size."""


def meets(entry: OperatorEntry, call: Applied) -> bool:
    """Whether a call is one of those that an entry is about; the receiver is an argument."""
    if entry.when is When.ONE_ARGUMENT:
        return len(call.arguments) + len(call.keywords) == 1
    if entry.when is When.TENSOR_REPEATS:
        repeats = call.get(1, "repeats")
        counts = call.first if repeats is None else repeats
        return isinstance(counts, Tensor) and "output_size" not in call.keywords
    if entry.when is When.WITHOUT_CLASSES:
        classes = call.get(1, "num_classes")
        return classes is None or (isinstance(classes, Number) and classes.text == "-1")
    if entry.when is When.WITHOUT_SIZE:
        return call.get(entry.size, *_SIZES) is None
    if entry.when is When.ERROR_IF_NONFINITE:
        return is_on(call.keywords.get("error_if_nonfinite"))
    return True


def result_of(entry: OperatorEntry, call: Applied, found: Sources) -> Value:
    """What such a call returns.

    Args:
        entry: The operator.
        call: The call, the receiver of a method among its arguments.
        found: What makes the result depend on data, empty if it does not.
    """
    first, shape, kind, host = call.first, call.shape, call.kind, is_on_host(call.first)
    dim = Dim("?", found)
    if entry.gives == "rows":
        return _rows(call, shape, dim, host)
    if entry.gives == "vector":
        kind = kind if entry.operator == "torch.masked_select" else "int"
        return Tensor(closed(dim), kind, host)
    if entry.gives == "unique":
        return _unique(call, shape, kind, dim, host)
    if entry.gives == "repeated":
        over = call.get(2, "dim")
        if not isinstance(over, Number):
            return Tensor(closed(dim), kind, host)
        number = over.value
        return Tensor(opened(found) if number is None else shape.with_dim(number, dim), kind, host)
    if entry.gives == "pairs":
        return Tensor(closed(dim, Dim("2")), kind, host)
    if entry.gives == "classes":
        return Tensor(shape.inserted(-1, dim), "int", host)
    if entry.gives == "boxes":
        return items_of((Tensor(closed(dim, Dim("5"))), Tensor(closed(dim), "int")))
    if entry.gives == "number":
        return Number("?", found | call.copied)
    if entry.gives == "list":
        each = Number("?", found | call.copied)
        return Items(each, None, shape.at(0).sources if shape != SCALAR else found)
    if entry.gives == "host":
        return first._replace(on_host=True) if isinstance(first, Tensor) else first
    if entry.gives == "nothing":
        return FOREIGN
    return apply_operator(call) if entry.gives == "same" else Tensor(opened(found))


def _rows(call: Applied, shape: Shape, dim: Dim, host: bool) -> Value:
    """Places of what is not zero: one row for each, or one vector for each dimension."""
    as_tuple = call.name == "where" or is_on(call.keywords.get("as_tuple"))
    vector = Tensor(closed(dim), "int", host)
    rank = shape.rank
    if as_tuple and call.name != "argwhere":
        return Items(vector, None if rank is None else (vector,) * rank)
    width = Dim("?" if rank is None else str(rank))
    return Tensor(closed(dim, width), "int", host)


def _unique(call: Applied, shape: Shape, kind: str, dim: Dim, host: bool) -> Value:
    over = call.get(4, "dim")
    values = Tensor(closed(dim), kind, host)
    if isinstance(over, Number):
        number = over.value
        values = values._replace(
            shape=opened(dim.sources) if number is None else shape.with_dim(number, dim)
        )
    extra = []
    if is_on(call.get(2, "return_inverse")):
        inverse = closed(shape.at(0)) if isinstance(over, Number) else shape
        extra.append(Tensor(inverse, "int", host))
    if is_on(call.get(3, "return_counts")):
        extra.append(Tensor(closed(dim), "int", host))
    return items_of((values, *extra)) if extra else values
