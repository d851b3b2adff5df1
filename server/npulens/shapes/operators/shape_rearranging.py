"""Operators that change the form of a tensor, or take a part of it."""

from collections.abc import Sequence
from math import prod

from npulens.shapes.values.applied import Applied, dim_of, shape_of, sizes
from npulens.shapes.values.shape_values import (
    UNKNOWN,
    Foreign,
    Items,
    Number,
    Value,
    items_of,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, ONE, Dim, Shape, Sources, closed, opened


def reshaped(call: Applied) -> Value:
    """The length that is given as -1 takes what the others do not name."""
    shape = call.shape
    given = call.arguments[1:] or [v for k, v in call.keywords.items() if k in ("shape", "size")]
    if len(given) == 1 and isinstance(given[0], Foreign):
        return call.result(shape)  # view(torch.int32)
    wanted = sizes(given)
    if wanted.is_open:
        return call.moved(opened(shape.sources | wanted.sources))
    inferred = Dim("?", shape.sources - wanted.sources)
    dims = (inferred if dim.text == "-1" else dim for dim in wanted.lead)
    return call.moved(closed(*dims))


def expanded(call: Applied) -> Value:
    shape, wanted = call.shape, sizes(call.arguments[1:])
    if wanted.is_open:
        return call.moved(opened(shape.sources | wanted.sources))
    start = len(wanted.lead)
    dims = (
        shape.at(index - start) if dim.text == "-1" else dim
        for index, dim in enumerate(wanted.lead)
    )
    return call.moved(closed(*dims))


def repeated(call: Applied) -> Value:
    """As often along each dimension as is given; more counts than dimensions come first."""
    shape, counts = call.shape, sizes(call.arguments[1:])
    rank, count = shape.rank, len(counts.lead)
    if counts.is_open or count == 0 or (rank is not None and rank > count):
        return call.moved(opened(shape.sources | counts.sources))
    if shape.is_open and shape.sources:
        return call.moved(opened(shape.sources | counts.sources))
    ones = count - rank if rank is not None else 0
    own = (ONE if i < ones else shape.at(i - count) for i in range(count))
    return call.moved(closed(*map(_times, own, counts.lead)))


def _times(dim: Dim, count: Dim) -> Dim:
    """The length of a dimension that is there several times."""
    sources = dim.sources | count.sources
    if "1" in (dim.text, count.text):
        return Dim(count.text if dim.text == "1" else dim.text, sources)
    return Dim(product_text([dim.text, count.text]), sources)


def product_text(texts: Sequence[str]) -> str:
    """How a product of lengths reads, `?` unless each is a number or a name."""
    factors = [text for text in texts if text != "1"]
    if all(text.isdecimal() for text in factors):
        number = prod(map(int, factors))
        return str(number) if number < 1 << 40 else "?"
    if len(factors) > 3 or not all(t.isidentifier() or t.isdecimal() for t in factors):
        return factors[0] if len(factors) == 1 else "?"
    return " * ".join(factors)


def interleaved(call: Applied) -> Value:
    """As long in one dimension as `output_size` says, if it is given."""
    number, is_whole = call.number(2, "dim"), call.get(2, "dim") is None
    if "output_size" not in call.keywords or (number is None and not is_whole):
        return call.moved(opened(call.sources))
    length = dim_of(call.keywords["output_size"])
    shape = closed(length) if number is None else call.shape.with_dim(number, length)
    return call.moved(shape)


def flattened(call: Applied) -> Value:
    shape, kind = call.shape, call.kind
    number = call.number(1, "start_dim")
    if call.get(1, "start_dim") is None:
        return call.result(closed(Dim("?", shape.sources)), kind)
    if number is None or number < 0 or number > len(shape.lead):
        return call.result(opened(shape.sources), kind)
    kept = shape.lead[:number]
    rest = frozenset().union(*(d.sources for d in (*shape.lead[number:], *shape.tail)))
    end = call.number(2, "end_dim", default=-1)
    if end != -1 and (end is None or end < number or end >= len(shape.lead)):
        return call.result(opened(shape.sources), kind)
    stop = len(shape.lead) if end == -1 else end + 1
    is_known = end != -1 or not shape.is_open
    text = product_text([dim.text for dim in shape.lead[number:stop]]) if is_known else "?"
    if end != -1:
        along = frozenset().union(*(dim.sources for dim in shape.lead[number:stop]))
        lead = (*kept, Dim(text, along), *shape.lead[stop:])
        return call.result(shape._replace(lead=lead), kind)
    return call.result(closed(*kept, Dim(text, rest | shape.hidden)), kind)


def unsqueezed(call: Applied) -> Value:
    index, shape = call.number(1, "dim"), call.shape
    shape = opened(shape.sources) if index is None else shape.inserted(index, ONE)
    return call.result(shape, call.kind)


def squeezed(call: Applied) -> Value:
    index, shape = call.number(1, "dim"), call.shape
    shape = opened(shape.sources) if index is None else shape.without(index)
    return call.result(shape, call.kind)


def transposed(call: Applied) -> Value:
    shape, kind = call.shape, call.kind
    if call.name in ("t", "T", "mT"):
        indices: list[int | None] = [-2, -1] if call.name == "mT" else [0, 1]
    else:
        indices = [call.number(1, "dim0"), call.number(2, "dim1")]
    first, second = indices
    if first is None or second is None:
        return call.result(opened(shape.sources), kind)
    one, other = shape.at(first), shape.at(second)
    return call.result(shape.with_dim(first, other).with_dim(second, one), kind)


def permuted(call: Applied) -> Value:
    shape, kind = call.shape, call.kind
    given = call.arguments[1:]
    if len(given) == 1 and isinstance(given[0], Items):
        given = given[0].elements or ()
    order = [place.value if isinstance(place, Number) else None for place in given]
    if None in order or not order:
        return call.result(opened(shape.sources), kind)
    if shape.is_open and len(shape.lead) < len(order):
        return call.result(opened(shape.sources), kind)
    return call.result(closed(*(shape.at(i) for i in order if i is not None)), kind)


def parts_of(call: Applied) -> Value:
    """`chunk`, `split`, `unbind`: a list of tensors."""
    shape, kind = call.shape, call.kind
    given = call.get(1, "chunks", "split_size_or_sections", "split_size", "dim")
    index = call.number(1 if call.name == "unbind" else 2, "dim", default=0)
    if index is None:
        return Items(call.result(opened(call.sources), kind))
    if call.name == "unbind":
        return Items(call.result(shape.without(index), kind), None, shape.at(index).sources)
    lengths = given.elements if isinstance(given, Items) else None
    if lengths is not None:
        parts = (call.result(shape.with_dim(index, dim_of(n)), kind) for n in lengths)
        return items_of(tuple(parts))
    sources = sources_of(given) if isinstance(given, Items) else shape.at(index).sources
    whole = shape.at(index).text
    text = _part(whole, given, is_count=call.name == "chunk")
    part = call.result(shape.with_dim(index, Dim(text, sources)), kind)
    number = given.value if isinstance(given, Number) and call.name == "chunk" else None
    if number is not None and 0 < number <= 16:
        return items_of((part,) * number)
    return Items(part, None, frozenset() if call.name == "chunk" else sources)


def _part(whole: str, given: Value | None, *, is_count: bool) -> str:
    """How long a part is that surely is as long as the others: `n` of `3 * n`."""
    if not isinstance(given, Number):
        return "?"
    if is_count and whole.isdecimal() and given.value:
        number, rest = divmod(int(whole), given.value)
        return "?" if rest else str(number)
    if " * " not in whole:
        return "?"
    first, _, second = whole.partition(" * ")
    for part, count in ((second, first), (first, second)):
        if given.text == (count if is_count else part) and part.isidentifier():
            return part
    return "?"


def narrowed(call: Applied) -> Value:
    index = call.number(1, "dim")
    if index is None:
        return call.moved(opened(call.sources))
    return call.moved(call.shape.with_dim(index, dim_of(call.get(3, "length"))))


def index_selected(call: Applied) -> Value:
    number, index = call.number(1, "dim"), call.get(2, "index") or UNKNOWN
    if number is None:
        return call.result(opened(call.sources))
    return call.result(call.shape.with_dim(number, shape_of(index).at(0)), call.kind)


def gathered(call: Applied) -> Value:
    return call.result(shape_of(call.get(2, "index") or UNKNOWN), call.kind)


def padded(call: Applied) -> Value:
    """Filling up to a fixed length ends what depended on data."""
    shape, amounts = call.shape, call.get(1, "pad")
    if not isinstance(amounts, Items) or amounts.elements is None:
        return call.moved(opened(call.sources))
    for place in range(len(amounts.elements) // 2):
        dim = shape.at(-1 - place)
        given = [v for v in amounts.elements[2 * place : 2 * place + 2] if isinstance(v, Number)]
        sources = dim.sources.union(*(number.sources for number in given))
        if any(number.is_rest for number in given):
            shape = _without_sources(shape, -1 - place, sources)
        elif len(given) < 2 or any(number.text != "0" for number in given):
            shape = shape.with_dim(-1 - place, Dim("?", sources))
    return call.moved(shape)


def _without_sources(shape: Shape, index: int, sources: Sources) -> Shape:
    if shape.rank is None:
        lead = tuple(dim._replace(sources=dim.sources - sources) for dim in shape.lead)
        return Shape(lead, True, (), shape.hidden - sources)
    return shape.with_dim(index, ANY_LENGTH)
