"""What PyTorch's operators make of shapes, by the name that functions and methods share."""

from npulens.shapes.operators.combining import (
    classes,
    comparison,
    elementwise,
    joined_along,
    like_first,
    multinomial,
    padded_sequence,
    product,
    stacked,
    where,
)
from npulens.shapes.operators.reductions import (
    loss,
    reduction,
    sorted_pair,
    topk,
    with_indices,
)
from npulens.shapes.operators.shape_rearranging import (
    expanded,
    flattened,
    gathered,
    index_selected,
    interleaved,
    narrowed,
    padded,
    parts_of,
    permuted,
    repeated,
    reshaped,
    squeezed,
    transposed,
    unsqueezed,
)
from npulens.shapes.values.applied import Applied, Transfer, shape_of
from npulens.shapes.values.shape_values import UNKNOWN, Tensor, Value, items_of
from npulens.shapes.values.symbolic_dims import ANY_SHAPE, SCALAR, opened


def apply_operator(call: Applied) -> Value:
    """The result of an operator of PyTorch; of one that is not known, some tensor."""
    transfer = TRANSFERS.get(call.name)
    if transfer is not None:
        return transfer(call)
    if call.name.endswith("_") and call.name.removesuffix("_") in TRANSFERS:
        return TRANSFERS[call.name.removesuffix("_")](call)
    if call.name.endswith("loss") or call.name == "cross_entropy":
        return loss(call)
    return call.result(opened(call.sources))


_SAME = (
    "abs neg exp log log2 log10 log1p expm1 sqrt rsqrt sin cos tan atan tanh sigmoid relu relu6 "
    "gelu "
    "silu mish elu selu celu leaky_relu hardswish hardsigmoid softplus logsigmoid softmax "
    "log_softmax dropout clamp clip clamp_min clamp_max floor ceil round trunc sign cumsum cumprod "
    "flip roll contiguous detach clone requires_grad_ normalize layer_norm group_norm "
    "batch_norm rms_norm nan_to_num erf erfinv reciprocal square to type_as tril triu index_add "
    "scatter scatter_add scatter_reduce index_copy index_fill masked_scatter logcumsumexp "
    "bernoulli zero fill copy uniform normal expand_dims cuda npu pin_memory logit "
    "index_put masked_fill zero_ fill_ copy_ uniform_ normal_ exponential_ half bfloat16 softmin "
    "gumbel_softmax threshold hardtanh dropout1d dropout2d alpha_dropout requires_grad byte char"
)
_BROADCAST = (
    "add sub mul div true_divide floor_divide pow remainder fmod maximum minimum atan2 lerp "
    "addcmul addcdiv bitwise_and bitwise_or bitwise_xor hypot dist xlogy rsub fmin fmax"
)
_BOOL = (
    "eq ne lt le gt ge greater greater_equal less less_equal equal_ logical_and logical_or "
    "logical_xor isclose not_equal"
)
_BOOL_LIKE = "isnan isinf isfinite isneginf isposinf logical_not isin signbit isreal"


TRANSFERS: dict[str, Transfer] = {
    **dict.fromkeys(_SAME.split(), like_first()),
    **dict.fromkeys(_BROADCAST.split(), elementwise),
    **dict.fromkeys(_BOOL.split(), comparison),
    **dict.fromkeys(_BOOL_LIKE.split(), like_first("bool")),
    **dict.fromkeys(("float", "double"), like_first("float")),
    **dict.fromkeys(("long", "int", "short", "argsort", "byte_"), like_first("int")),
    **dict.fromkeys(("bool", "bitwise_not_"), like_first("bool")),
    **dict.fromkeys(("sum", "prod", "amax", "amin", "nansum"), reduction(None)),
    **dict.fromkeys(("mean", "std", "var", "logsumexp", "nanmean"), reduction("float")),
    **dict.fromkeys(("norm",), reduction("float", at=2)),
    **dict.fromkeys(("any", "all"), reduction("bool")),
    **dict.fromkeys(("argmax", "argmin", "count_nonzero"), reduction("int")),
    **dict.fromkeys(("max", "min", "median", "mode", "nanmedian", "kthvalue"), with_indices),
    **dict.fromkeys(("sort", "cummax", "cummin"), sorted_pair),
    "topk": topk,
    "where": where,
    **dict.fromkeys(("cat", "concat", "concatenate", "hstack_"), joined_along),
    "stack": stacked,
    **dict.fromkeys(("view", "reshape"), reshaped),
    "expand": expanded,
    **dict.fromkeys(("repeat", "tile"), repeated),
    "repeat_interleave": interleaved,
    **dict.fromkeys(
        ("view_as", "expand_as", "reshape_as"),
        lambda c: c.result(shape_of(c.get(1, "other") or UNKNOWN), c.kind),
    ),
    **dict.fromkeys(("flatten", "ravel"), flattened),
    "unsqueeze": unsqueezed,
    "squeeze": squeezed,
    **dict.fromkeys(("transpose", "swapaxes", "t", "T", "mT"), transposed),
    "permute": permuted,
    **dict.fromkeys(("chunk", "split", "unbind", "tensor_split"), parts_of),
    "narrow": narrowed,
    "index_select": index_selected,
    **dict.fromkeys(("gather", "take_along_dim"), gathered),
    "pad": padded,
    **dict.fromkeys(("matmul", "mm", "bmm", "linear"), product),
    **dict.fromkeys(("histc", "trace", "det", "dot"), lambda c: c.result(ANY_SHAPE)),
    "one_hot": classes,
    "multinomial": multinomial,
    "pad_sequence": padded_sequence,
    "aminmax": lambda c: items_of((c.result(SCALAR), c.result(SCALAR))),
    "backward": lambda c: UNKNOWN,
    # Of a tensor that is on the host, or it fails anywhere; the array is as good as the tensor.
    "numpy": lambda c: Tensor(c.shape, c.kind, on_host=True, copied=c.copied),
}

"""Names with an underscore behind them, which work in place, need no entry of their own."""
