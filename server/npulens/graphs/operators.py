"""PyTorch's functions, methods and modules as operators with one order of operands each."""

from collections.abc import Mapping
from typing import NamedTuple

from npulens.graphs.nodes import Scalar


class Parameter(NamedTuple):
    """A parameter of an operator; `default` counts unless the argument is required."""

    name: str
    required: bool
    default: Scalar = None


class Signature(NamedTuple):
    """An operator and the parameters that become its operands, in order."""

    operator: str
    parameters: tuple[Parameter, ...]


_SIGNATURES = """
rsqrt(input) sqrt(input) square(input) reciprocal(input) neg(input) abs(input)
exp(input) log(input) erf(input) tanh(input) sigmoid(input) relu(input) sin(input) cos(input)
silu(input) mish(input) gelu(input, approximate='none') softplus(input, beta=1, threshold=20)
pow(input, exponent) add(input, other, alpha=1) sub(input, other, alpha=1) mul(input, other)
div(input, other, rounding_mode=None) rsub(input, other, alpha=1)
maximum(input, other) minimum(input, other) clamp(input, min=None, max=None)
addcmul(input, tensor1, tensor2, value=1)
mean(input, dim=None, keepdim=False) sum(input, dim=None, keepdim=False)
var(input, dim=None, unbiased=True, keepdim=False)
std(input, dim=None, unbiased=True, keepdim=False)
norm(input, p=2, dim=None, keepdim=False) amax(input, dim=None, keepdim=False)
max(input, dim=None, keepdim=False)
softmax(input, dim=None) log_softmax(input, dim=None) logsumexp(input, dim, keepdim=False)
normalize(input, p=2, dim=1, eps=1e-12)
layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)
rms_norm(input, normalized_shape, weight=None, eps=None)
group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)
linear(input, weight, bias=None) dropout(input, p=0.5, training=True)
matmul(input, other) bmm(input, other) baddbmm(input, batch1, batch2, beta=1, alpha=1)
embedding(input, weight)
scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
 scale=None, enable_gqa=False)
cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
 reduction='mean', label_smoothing=0.0)
glu(input, dim=-1)
chunk(input, chunks, dim=0) tensor_split(input, sections, dim=0)
split(input, split_size, dim=0) unbind(input, dim=0)
cat(tensors, dim=0) stack(tensors, dim=0)
unsqueeze(input, dim) squeeze(input, dim=None) flatten(input, start_dim=0, end_dim=-1)
unflatten(input, dim, sizes)
transpose(input, dim0, dim1) roll(input, shifts, dims=None) flip(input, dims)
repeat_interleave(input, repeats, dim=None)
narrow(input, dim, start, length) index_select(input, dim, index)
masked_fill(input, mask, value) where(condition, input, other)
logical_not(input) logical_and(input, other) logical_or(input, other)
eq(input, other) ne(input, other) lt(input, other) le(input, other) gt(input, other)
ge(input, other)
triu(input, diagonal=0) tril(input, diagonal=0)
view_as_complex(input) complex(real, imag) view_as_real(input) polar(abs, angle)
ones_like(input) zeros_like(input) full_like(input, fill_value) rand_like(input) empty_like(input)
floor(input) round(input) argmax(input, dim=None, keepdim=False)
index_add(input, dim, index, source, alpha=1) gather(input, dim, index)
nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
 reduction='mean') bernoulli(input, p=None)
kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False)
topk(input, k, dim=-1, largest=True, sorted=True)
outer(input, vec2)
"""
"""Dtype, layout, memory format, `inplace` and `out` are no operands: they do not change values."""

_ALIASES = {
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
    "concat": "cat",
    "concatenate": "cat",
    "mm": "matmul",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "clip": "clamp",
    "bitwise_not": "logical_not",
    "expit": "sigmoid",
    "swish": "silu",
    "masked_fill_": "masked_fill",
}

_NO_METHODS = frozenset(
    {
        *("silu", "swish", "mish", "gelu", "glu", "softplus", "expit", "dropout", "linear"),
        *("embedding", "normalize", "layer_norm", "rms_norm", "group_norm"),
        *("scaled_dot_product_attention", "cross_entropy", "nll_loss", "kl_div"),
        *("cat", "concat", "concatenate", "stack", "complex", "polar", "rsub"),
        *("view_as_complex", "view_as_real", "ones_like", "zeros_like", "full_like"),
        *("rand_like", "empty_like"),
    }
)
"""Functions that tensors have no method for: one that takes a tensor so belongs to a module."""

_ARGUMENT_ALIASES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "split_size_or_sections": "split_size",
    "indices_or_sections": "sections",
    "self": "input",
    "train": "training",
    "x": "input",
    "mat2": "other",
    "axis0": "dim0",
    "axis1": "dim1",
}
"""NumPy's names, which torch takes too, and those that differ between forms of one operator.

`torch.dropout(x, p, train=True)` is `functional.dropout`.
"""

WITHOUT_EFFECT = frozenset(
    {"inplace", "out", "_stacklevel", "memory_format", "non_blocking", "copy", "is_train"}
    | {"requires_grad", "device"}
)
"""Arguments that leave values as they are."""

_MODULES = {
    "SiLU": "silu()",
    "Sigmoid": "sigmoid()",
    "Tanh": "tanh()",
    "ReLU": "relu()",
    "Mish": "mish()",
    "GELU": "gelu(approximate='none')",
    "Softmax": "softmax(dim=None)",
    "LogSoftmax": "log_softmax(dim=None)",
    "Dropout": "dropout(p=0.5)",
    "Flatten": "flatten(start_dim=1, end_dim=-1)",
}
"""Modules whose call is an operator on their first argument, with what their constructor takes."""

_LOSSES = {
    "NLLLoss": "nll_loss(weight=None, size_average=None, ignore_index=-100, reduce=None,"
    " reduction='mean')",
    "KLDivLoss": "kl_div(size_average=None, reduce=None, reduction='mean', log_target=False)",
}
"""Modules of two arguments."""

CASTS: Mapping[str, str] = {
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "type_as": "",
    "type": "",
    "to": "",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}
"""Methods that change the type of a tensor, with the name of that type where they fix it."""

VIEWS = frozenset({"reshape", "view", "permute", "expand", "repeat"})
"""Methods that take their sizes one by one or as one sequence."""

UNCHANGED = frozenset({"contiguous", "clone"})
"""Methods that copy at most."""


def _parse(text: str) -> dict[str, Signature]:
    signatures: dict[str, Signature] = {}
    for entry in text.replace(",\n", ", ").split(")"):
        name, _, rest = entry.strip().partition("(")
        if not name:
            continue
        parameters = []
        for part in filter(None, (part.strip() for part in rest.split(","))):
            parameter, _, default = part.partition("=")
            parameters.append(Parameter(parameter, not default, _literal(default)))
        signatures[name] = Signature(name, tuple(parameters))
    return signatures


def _literal(text: str) -> Scalar:
    named = {"": None, "None": None, "True": True, "False": False}
    if text in named:
        return named[text]
    return text.strip("'") if text.startswith("'") else float(text)


_BY_NAME = _parse(_SIGNATURES)
_MODULE_SIGNATURES = {
    name: _parse(constructor)[constructor.partition("(")[0]]
    for name, constructor in (*_MODULES.items(), *_LOSSES.items())
}
_PREFIXES = (
    *("torch.nn.functional.", "torch.special.", "torch.linalg.vector_", "torch.functional."),
    "torch.",
)


def parameter_name(keyword: str) -> str:
    """The one name of an argument that has several."""
    return _ARGUMENT_ALIASES.get(keyword, keyword)


def operator_named(name: str) -> Signature | None:
    """The signature of an operator or method by its last name, in-place forms included."""
    name = _ALIASES.get(name, name)
    found = _BY_NAME.get(name)
    if found is None and name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
        found = _BY_NAME.get(_ALIASES.get(name, name))
    return found


def method_operator(name: str, is_given_more: bool) -> Signature | None:
    """The signature of a method of tensors: `self.block.dropout(x)` is none, `x.gelu()` is read."""
    return None if is_given_more and name in _NO_METHODS else operator_named(name)


def function_operator(qualified: str) -> Signature | None:
    """The signature of a function of torch by its full name."""
    for prefix in _PREFIXES:
        if qualified.startswith(prefix):
            name = qualified[len(prefix) :]
            return None if "." in name else operator_named(name)
    return None


def takes_two(qualified: str) -> bool:
    """Whether an instance of a class of `torch.nn` is called with two tensors."""
    return qualified.rpartition(".")[2] in _LOSSES


def module_operator(qualified: str) -> Signature | None:
    """What calling an instance of a class of `torch.nn` computes: its constructor's arguments."""
    head, _, name = qualified.rpartition(".")
    if head in ("torch.nn", "torch.nn.modules.activation", "torch.nn.modules"):
        return _MODULE_SIGNATURES.get(name)
    return None
