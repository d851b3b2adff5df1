"""What PyTorch's operators make of shapes, by the name that functions and methods share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npulens.shapes.extents import (
    ANY_LENGTH,
    ANY_SHAPE,
    ONE,
    SCALAR,
    Dim,
    Shape,
    Sources,
    broadcast,
    closed,
    opened,
)
from npulens.shapes.values import (
    UNKNOWN,
    Foreign,
    Items,
    Number,
    Size,
    Tensor,
    Value,
    is_on,
    items_of,
    sources_of,
)


@dataclass(slots=True)
class Applied:
    """A call of an operator; the receiver of a method is its first argument."""

    name: str
    arguments: Sequence[Value]
    keywords: dict[str, Value] = field(default_factory=dict)

    def get(self, index: int, *names: str) -> Value | None:
        """An argument by place or name."""
        if index < len(self.arguments):
            return self.arguments[index]
        return next((self.keywords[name] for name in names if name in self.keywords), None)

    @property
    def first(self) -> Value:
        return self.get(0, "input", "x", "tensor") or UNKNOWN

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments, also those in lists."""
        found: list[Tensor] = []
        for value in (*self.arguments, *self.keywords.values()):
            if isinstance(value, Tensor):
                found.append(value)
            elif isinstance(value, Items):
                parts = value.elements if value.elements is not None else (value.each,)
                found += (part for part in parts if isinstance(part, Tensor))
        return found

    @property
    def sources(self) -> Sources:
        return frozenset().union(*map(sources_of, (*self.arguments, *self.keywords.values())))

    def result(self, shape: Shape, kind: str = "") -> Tensor:
        """A tensor computed from the arguments."""
        tensors = self.tensors
        return Tensor(
            shape,
            kind,
            bool(tensors) and all(tensor.on_host for tensor in tensors),
            bool(tensors) and all(tensor.is_fixed for tensor in tensors),
        )


Transfer = Callable[[Applied], Value]


def apply_operator(call: Applied) -> Value:
    """The result of an operator of PyTorch; of one that is not known, some tensor."""
    transfer = TRANSFERS.get(call.name)
    if transfer is not None:
        return transfer(call)
    if call.name.endswith("_") and call.name.removesuffix("_") in TRANSFERS:
        return TRANSFERS[call.name.removesuffix("_")](call)
    if call.name.endswith("_loss") or call.name == "cross_entropy":
        return _loss(call)
    return call.result(opened(call.sources))


def shape_of(value: Value) -> Shape:
    """The shape of a tensor; numbers have none."""
    if isinstance(value, Tensor):
        return value.shape
    return SCALAR if isinstance(value, Number) else ANY_SHAPE


def _elementwise(call: Applied) -> Value:
    first = call.first
    kind = first.kind if isinstance(first, Tensor) else ""
    return call.result(broadcast(tensor.shape for tensor in call.tensors), kind)


def _like_first(kind: str | None = None) -> Transfer:
    def transfer(call: Applied) -> Value:
        first = call.first
        own = first.kind if isinstance(first, Tensor) else ""
        return call.result(shape_of(first), own if kind is None else kind)

    return transfer


def _comparison(call: Applied) -> Value:
    return call.result(broadcast(tensor.shape for tensor in call.tensors), "bool")


def _where(call: Applied) -> Value:
    chosen = call.get(1, "input")
    kind = chosen.kind if isinstance(chosen, Tensor) else ""
    return call.result(broadcast(tensor.shape for tensor in call.tensors), kind)


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
    for index in sorted((i for i in indices if i >= 0), reverse=True):
        shape = shape.with_dim(index, ONE) if keeps else shape.without(index)
    for index in sorted(i for i in indices if i < 0):
        shape = shape.with_dim(index, ONE) if keeps else shape.without(index)
    return shape


def _reduction(kind: str | None, default: int | None = None, at: int = 1) -> Transfer:
    def transfer(call: Applied) -> Value:
        first = call.first
        over = call.get(at, "dim", "axis")
        if isinstance(over, Tensor):
            return _elementwise(call)  # torch.max(a, b)
        if isinstance(over, Foreign) or (over is None and default is None):
            over = None
        elif over is None:
            over = Number(str(default))
        keeps = is_on(call.get(at + 1, "keepdim"))
        own = first.kind if isinstance(first, Tensor) else ""
        own = "int" if kind is None and own == "bool" else own
        return call.result(reduced(shape_of(first), over, keeps), own if kind is None else kind)

    return transfer


def _with_indices(call: Applied) -> Value:
    """`max`, `min`, `median`: with a dimension also where the values stand."""
    if call.get(1, "dim", "axis") is None or isinstance(call.get(1, "dim"), Tensor):
        return _reduction(None)(call)
    values = _reduction(None)(call)
    assert isinstance(values, Tensor)
    return items_of((values, values._replace(kind="int")))


def _sorted(call: Applied) -> Value:
    values = call.result(shape_of(call.first), getattr(call.first, "kind", ""))
    return items_of((values, values._replace(kind="int")))


def dim_of(value: Value | None) -> Dim:
    """The length that a number gives a dimension."""
    if isinstance(value, Number):
        return Dim(value.text, value.sources, value.is_rest)
    return ANY_LENGTH


def _topk(call: Applied) -> Value:
    over = call.get(2, "dim")
    index = over.value if isinstance(over, Number) else -1
    shape = shape_of(call.first).with_dim(-1 if index is None else index, dim_of(call.get(1, "k")))
    values = call.result(shape, getattr(call.first, "kind", ""))
    return items_of((values, values._replace(kind="int")))


def _joined_along(call: Applied) -> Value:
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
    return call.result(shape._replace(hidden=shape.hidden | rest) if rest else shape)


def _stacked(call: Applied) -> Value:
    parts, over = call.first, call.get(1, "dim")
    index = 0 if over is None else over.value if isinstance(over, Number) else None
    if not isinstance(parts, Items) or index is None:
        return call.result(opened(call.sources))
    shape = broadcast(tensor.shape for tensor in call.tensors)
    number = Dim("?" if parts.elements is None else str(len(parts.elements)), parts.sources)
    return call.result(shape.inserted(index, number))


def sizes(values: Sequence[Value]) -> Shape:
    """The shape that arguments such as `(n, 4)` or `n, 4` ask for."""
    if len(values) == 1 and isinstance(values[0], Size):
        return values[0].shape
    if len(values) == 1 and isinstance(values[0], Items):
        if values[0].elements is None:
            return opened(sources_of(values[0]))
        values = values[0].elements
    if any(not isinstance(value, Number | Tensor) for value in values):
        return opened(frozenset().union(*map(sources_of, values)))
    return closed(*map(dim_of, values))


def _reshaped(call: Applied) -> Value:
    """The length that is given as -1 takes what the others do not name."""
    shape = shape_of(call.first)
    kind = getattr(call.first, "kind", "")
    asked = call.arguments[1:] or [v for k, v in call.keywords.items() if k in ("shape", "size")]
    if len(asked) == 1 and isinstance(asked[0], Foreign):
        return call.result(shape)  # view(torch.int32)
    wanted = sizes(asked)
    if wanted.is_open:
        return call.result(opened(shape.sources | wanted.sources), kind)
    inferred = Dim("?", shape.sources - wanted.sources)
    dims = (inferred if dim.text == "-1" else dim for dim in wanted.lead)
    return call.result(closed(*dims), kind)


def _expanded(call: Applied) -> Value:
    shape, wanted = shape_of(call.first), sizes(call.arguments[1:])
    if wanted.is_open:
        return call.result(opened(shape.sources | wanted.sources), getattr(call.first, "kind", ""))
    start = len(wanted.lead)
    dims = (
        shape.at(index - start) if dim.text == "-1" else dim
        for index, dim in enumerate(wanted.lead)
    )
    return call.result(closed(*dims), getattr(call.first, "kind", ""))


def _repeated(call: Applied) -> Value:
    shape = shape_of(call.first)
    return call.result(opened(shape.sources | sizes(call.arguments[1:]).sources))


def _flattened(call: Applied) -> Value:
    shape, kind = shape_of(call.first), getattr(call.first, "kind", "")
    start = call.get(1, "start_dim")
    if start is None:
        return call.result(closed(Dim("?", shape.sources)), kind)
    number = start.value if isinstance(start, Number) else None
    if number is None or number < 0 or number > len(shape.lead):
        return call.result(opened(shape.sources), kind)
    kept = shape.lead[:number]
    rest = frozenset().union(*(d.sources for d in (*shape.lead[number:], *shape.tail)))
    if call.get(2, "end_dim") is not None:
        return call.result(opened(shape.sources), kind)
    return call.result(closed(*kept, Dim("?", rest | shape.hidden)), kind)


def _unsqueezed(call: Applied) -> Value:
    over = call.get(1, "dim")
    index = over.value if isinstance(over, Number) else None
    shape = shape_of(call.first)
    shape = opened(shape.sources) if index is None else shape.inserted(index, ONE)
    return call.result(shape, getattr(call.first, "kind", ""))


def _squeezed(call: Applied) -> Value:
    over = call.get(1, "dim")
    shape, kind = shape_of(call.first), getattr(call.first, "kind", "")
    index = over.value if isinstance(over, Number) else None
    if index is None:
        return call.result(opened(shape.sources), kind)
    return call.result(shape.without(index), kind)


def _transposed(call: Applied) -> Value:
    shape, kind = shape_of(call.first), getattr(call.first, "kind", "")
    if call.name in ("t", "T", "mT"):
        indices: list[int | None] = [-2, -1] if call.name == "mT" else [0, 1]
    else:
        places = (call.get(1, "dim0"), call.get(2, "dim1"))
        indices = [place.value if isinstance(place, Number) else None for place in places]
    first, second = indices
    if first is None or second is None:
        return call.result(opened(shape.sources), kind)
    one, other = shape.at(first), shape.at(second)
    return call.result(shape.with_dim(first, other).with_dim(second, one), kind)


def _permuted(call: Applied) -> Value:
    shape, kind = shape_of(call.first), getattr(call.first, "kind", "")
    asked = call.arguments[1:]
    if len(asked) == 1 and isinstance(asked[0], Items):
        asked = asked[0].elements or ()
    order = [place.value if isinstance(place, Number) else None for place in asked]
    if None in order or not order:
        return call.result(opened(shape.sources), kind)
    if shape.is_open and len(shape.lead) < len(order):
        return call.result(opened(shape.sources), kind)
    return call.result(closed(*(shape.at(i) for i in order if i is not None)), kind)


def _parts(call: Applied) -> Value:
    """`chunk`, `split`, `unbind`: a list of tensors."""
    shape, kind = shape_of(call.first), getattr(call.first, "kind", "")
    asked = call.get(1, "chunks", "split_size_or_sections", "split_size", "dim")
    over = call.get(1, "dim") if call.name == "unbind" else call.get(2, "dim")
    index = 0 if over is None else over.value if isinstance(over, Number) else None
    if index is None:
        return Items(call.result(opened(call.sources), kind))
    if call.name == "unbind":
        return Items(call.result(shape.without(index), kind), None, shape.at(index).sources)
    lengths = asked.elements if isinstance(asked, Items) else None
    if lengths is not None:
        parts = (call.result(shape.with_dim(index, dim_of(n)), kind) for n in lengths)
        return items_of(tuple(parts))
    sources = sources_of(asked) if isinstance(asked, Items) else shape.at(index).sources
    part = call.result(shape.with_dim(index, Dim("?", sources)), kind)
    number = asked.value if isinstance(asked, Number) and call.name == "chunk" else None
    if number is not None and 0 < number <= 16:
        return items_of((part,) * number)
    return Items(part, None, frozenset() if call.name == "chunk" else sources)


def _narrowed(call: Applied) -> Value:
    over, length = call.get(1, "dim"), call.get(3, "length")
    index = over.value if isinstance(over, Number) else None
    shape = shape_of(call.first)
    if index is None:
        return call.result(opened(call.sources))
    return call.result(shape.with_dim(index, dim_of(length)), getattr(call.first, "kind", ""))


def _index_selected(call: Applied) -> Value:
    over, index = call.get(1, "dim"), call.get(2, "index")
    number = over.value if isinstance(over, Number) else None
    if number is None:
        return call.result(opened(call.sources))
    shape = shape_of(call.first).with_dim(number, shape_of(index or UNKNOWN).at(0))
    return call.result(shape, getattr(call.first, "kind", ""))


def _gathered(call: Applied) -> Value:
    index = call.get(2, "index") or UNKNOWN
    return call.result(shape_of(index), getattr(call.first, "kind", ""))


def _padded(call: Applied) -> Value:
    """Filling up to a fixed length ends what depended on data."""
    shape, amounts = shape_of(call.first), call.get(1, "pad")
    if not isinstance(amounts, Items) or amounts.elements is None:
        return call.result(opened(call.sources))
    for place in range(len(amounts.elements) // 2):
        dim = shape.at(-1 - place)
        given = [v for v in amounts.elements[2 * place : 2 * place + 2] if isinstance(v, Number)]
        sources = dim.sources.union(*(number.sources for number in given))
        if any(number.is_rest for number in given):
            shape = _without_sources(shape, -1 - place, sources)
        elif any(number.text != "0" for number in given):
            shape = shape.with_dim(-1 - place, Dim("?", sources))
    return call.result(shape, getattr(call.first, "kind", ""))


def _without_sources(shape: Shape, index: int, sources: Sources) -> Shape:
    if shape.rank is None:
        lead = tuple(dim._replace(sources=dim.sources - sources) for dim in shape.lead)
        return Shape(lead, True, (), shape.hidden - sources)
    return shape.with_dim(index, ANY_LENGTH)


def _loss(call: Applied) -> Value:
    reduction = call.keywords.get("reduction")
    if reduction is None or reduction in (Foreign("mean"), Foreign("sum")):
        return call.result(SCALAR, "float")
    return call.result(opened(call.sources), "float")


def _product(call: Applied) -> Value:
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


def _ends(kind: str = "") -> Transfer:
    return lambda call: call.result(ANY_SHAPE, kind)


def _classes(call: Applied) -> Value:
    return call.result(shape_of(call.first).inserted(-1, dim_of(call.get(1, "num_classes"))), "int")


def _multinomial(call: Applied) -> Value:
    return call.result(shape_of(call.first).with_dim(-1, dim_of(call.get(1, "num_samples"))), "int")


def _padded_sequence(call: Applied) -> Value:
    """As long as the longest."""
    parts = call.first
    if not isinstance(parts, Items):
        return call.result(opened(call.sources))
    return call.result(closed_sequence(parts))


def closed_sequence(parts: Items) -> Shape:
    each = shape_of(parts.each)
    return Shape(hidden=each.sources | parts.sources)


_SAME = (
    "abs neg exp log log2 log10 log1p expm1 sqrt rsqrt sin cos tan atan tanh sigmoid relu relu6 gelu "
    "silu mish elu selu celu leaky_relu hardswish hardsigmoid softplus logsigmoid softmax "
    "log_softmax dropout clamp clip clamp_min clamp_max floor ceil round trunc sign cumsum cumprod "
    "flip roll contiguous detach clone requires_grad_ normalize layer_norm group_norm "
    "batch_norm rms_norm nan_to_num erf erfinv reciprocal square to type_as tril triu index_add "
    "scatter scatter_add scatter_reduce index_copy index_fill masked_scatter logcumsumexp "
    "bernoulli zero fill copy uniform normal expand_dims cuda npu pin_memory logit "
    "index_put masked_fill zero_ fill_ copy_ uniform_ normal_ exponential_ half bfloat16 softmin "
    "gumbel_softmax threshold hardtanh dropout1d dropout2d alpha_dropout requires_grad"
).split()
_BROADCAST = (
    "add sub mul div true_divide floor_divide pow remainder fmod maximum minimum atan2 lerp "
    "addcmul addcdiv bitwise_and bitwise_or bitwise_xor hypot dist xlogy rsub fmin fmax"
).split()
_BOOL = (
    "eq ne lt le gt ge greater greater_equal less less_equal equal_ logical_and logical_or "
    "logical_xor isclose not_equal"
).split()
_BOOL_LIKE = "isnan isinf isfinite isneginf isposinf logical_not isin signbit isreal".split()

TRANSFERS: dict[str, Transfer] = {
    **dict.fromkeys(_SAME, _like_first()),
    **dict.fromkeys(_BROADCAST, _elementwise),
    **dict.fromkeys(_BOOL, _comparison),
    **dict.fromkeys(_BOOL_LIKE, _like_first("bool")),
    **dict.fromkeys(("float", "double"), _like_first("float")),
    **dict.fromkeys(("long", "int", "short", "argsort", "byte_"), _like_first("int")),
    **dict.fromkeys(("bool", "bitwise_not_"), _like_first("bool")),
    **dict.fromkeys(("sum", "prod", "amax", "amin", "nansum"), _reduction(None)),
    **dict.fromkeys(("mean", "std", "var", "logsumexp", "nanmean"), _reduction("float")),
    **dict.fromkeys(("norm",), _reduction("float", at=2)),
    **dict.fromkeys(("any", "all"), _reduction("bool")),
    **dict.fromkeys(("argmax", "argmin", "count_nonzero"), _reduction("int")),
    **dict.fromkeys(("max", "min", "median", "mode", "nanmedian", "kthvalue"), _with_indices),
    **dict.fromkeys(("sort", "cummax", "cummin"), _sorted),
    "topk": _topk,
    "where": _where,
    **dict.fromkeys(("cat", "concat", "concatenate", "hstack_"), _joined_along),
    "stack": _stacked,
    **dict.fromkeys(("view", "reshape"), _reshaped),
    "expand": _expanded,
    **dict.fromkeys(("repeat", "tile"), _repeated),
    **dict.fromkeys(
        ("view_as", "expand_as", "reshape_as"),
        lambda c: c.result(shape_of(c.get(1, "other") or UNKNOWN), getattr(c.first, "kind", "")),
    ),
    **dict.fromkeys(("flatten", "ravel"), _flattened),
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    **dict.fromkeys(("transpose", "swapaxes", "t", "T", "mT"), _transposed),
    "permute": _permuted,
    **dict.fromkeys(("chunk", "split", "unbind", "tensor_split"), _parts),
    "narrow": _narrowed,
    "index_select": _index_selected,
    **dict.fromkeys(("gather", "take_along_dim"), _gathered),
    "pad": _padded,
    **dict.fromkeys(("matmul", "mm", "bmm", "linear"), _product),
    **dict.fromkeys(("histc", "trace", "det", "dot"), _ends()),
    "one_hot": _classes,
    "multinomial": _multinomial,
    "pad_sequence": _padded_sequence,
    "aminmax": lambda c: items_of((c.result(SCALAR), c.result(SCALAR))),
    "backward": lambda c: UNKNOWN,
}
"""Names with an underscore behind them, which work in place, need no entry of their own."""
