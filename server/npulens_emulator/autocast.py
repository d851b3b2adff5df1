"""Which operators `torch.autocast("npu")` runs in which precision.

The lists are those of PyTorch's reference for accelerators; torch_npu registers the same.
Operators of torch_npu itself are not cast.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.fallback import mapped

_C: Any = torch._C
_KEY = "AutocastPrivateUse1"
_SET = _C.DispatchKeySet(_C.DispatchKey.AutocastPrivateUse1)

LOWER = """_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linear addbmm baddbmm
bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell
rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention""".split()
FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm
frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss
huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp""".split()
FLOAT32_RESULT = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm
linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList""".split()
WIDEST = """addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put tensordot
scatter_add""".split()

_libraries: list[torch.library.Library] = []
_casts: dict[int, tuple[Tensor, Tensor, int]] = {}
"""Parameters that were cast in this region, by id: the parameter, the result, its version."""


def _is_cast(tensor: Tensor) -> bool:
    floating = tensor.is_floating_point() and tensor.dtype != torch.float64
    return floating and tensor.device.type == "npu"


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not _is_cast(tensor) or tensor.dtype == dtype:
        return tensor
    is_parameter = tensor.dtype == torch.float32 and tensor.requires_grad and tensor.is_leaf
    if not (is_parameter and torch.is_autocast_cache_enabled() and torch.is_grad_enabled()):
        return tensor.to(dtype)
    known = _casts.get(id(tensor))
    if known is not None and _holds(known, tensor, dtype):
        return known[1]
    made = tensor.to(dtype)
    _casts[id(tensor)] = (tensor, made, tensor._version)
    return made


def _holds(known: tuple[Tensor, Tensor, int], tensor: Tensor, dtype: torch.dtype) -> bool:
    return known[0] is tensor and known[1].dtype == dtype and known[2] == tensor._version


def _excluded() -> Any:
    return _C._ExcludeDispatchKeyGuard(_SET)


def _all_cast(values: Any, dtype: torch.dtype) -> Any:
    if isinstance(values, dict):
        return {name: _all_cast(value, dtype) for name, value in values.items()}
    return mapped(values, lambda tensor: _cast(tensor, dtype))


def _lowering(operator: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _excluded():
            dtype = torch.get_autocast_dtype("npu")
            return operator(*_all_cast(args, dtype), **_all_cast(kwargs, dtype))

    return kernel


def _in_float32(operator: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _excluded():
            return operator(*_all_cast(args, torch.float32), **_all_cast(kwargs, torch.float32))

    return kernel


def _with_float32_result(operator: Any) -> Callable[..., Any]:
    """The parameter `dtype` is float32 unless given."""
    names = [argument.name for argument in operator._schema.arguments]
    if "dtype" not in names:
        return _in_float32(operator)
    position = names.index("dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _excluded():
            given = args[position] if position < len(args) else kwargs.get("dtype")
            first = next((each for each in args if isinstance(each, Tensor)), None)
            if given is None and first is not None and _is_cast(first):
                if position < len(args):
                    args = (*args[:position], torch.float32, *args[position + 1 :])
                else:
                    kwargs = {**kwargs, "dtype": torch.float32}
            return operator(*args, **kwargs)

    return kernel


def _in_widest(operator: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _excluded():
            if len({each.dtype for each in _tensors(args) if _is_cast(each)}) > 1:
                return operator(*_all_cast(args, torch.float32), **kwargs)
            return operator(*args, **kwargs)

    return kernel


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _refused(operator: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "binary_cross_entropy and BCELoss are unsafe to autocast; "
            "use binary_cross_entropy_with_logits or BCEWithLogitsLoss"
        )

    return kernel


def register() -> None:
    """Register the rules."""
    library: Any = torch.library.Library
    aten, others = library("aten", "IMPL"), library("_", "IMPL")
    others.fallback(torch.library.fallthrough_kernel, _KEY)
    _libraries.extend((aten, others))
    for names, make in (
        (LOWER, _lowering),
        (FLOAT32, _in_float32),
        (FLOAT32_RESULT, _with_float32_result),
        (WIDEST, _in_widest),
        (["binary_cross_entropy"], _refused),
    ):
        for name in names:
            base, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if operator is not None:
                aten.impl(name, make(operator), _KEY)
    _forget_casts_at_the_end()


def _forget_casts_at_the_end() -> None:
    """Casts of parameters hold until the outermost region ends."""
    autocast: Any = torch.amp.autocast_mode.autocast
    leave = autocast.__exit__

    def leave_and_forget(self: Any, *raised: Any) -> Any:
        result = leave(self, *raised)
        if not torch.is_autocast_enabled("npu"):
            _casts.clear()
        return result

    autocast.__exit__ = leave_and_forget
