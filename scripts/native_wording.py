"""What `make_native_table.py` says of native APIs, and what it leaves out and why."""

from typing import Any


def words(text: str) -> set[str]:
    """The words of a text."""
    return set(text.split())


UNSUPPORTED = "native-api-unsupported"
LIMITED = "torch-api-limited"
TYPE = "native-dtype"

KINDS: dict[str, dict[str, Any]] = {
    "unsupported": {"rule": UNSUPPORTED},
    "unsupported-use": {
        "rule": UNSUPPORTED,
        "text": {"en": "Use {instead} instead.", "zh": "可改用 {instead}。"},
    },
    "unsupported-compose": {
        "rule": UNSUPPORTED,
        "text": {
            "en": "It can be written with {instead}.",
            "zh": "可以用 {instead} 自行实现。",
        },
    },
    "unsupported-other-form": {
        "rule": UNSUPPORTED,
        "severity": "info",
        "text": {
            "en": "The tables list {instead}, which does the same, as supported.",
            "zh": "官方支持列表中，功能相同的 {instead} 标为支持。",
        },
    },
    "unsupported-modules": {
        "rule": UNSUPPORTED,
        "severity": "info",
        "text": {
            "en": "PyTorch makes it of other modules, and the tables list {instead}: it may work, "
            "so try it.",
            "zh": "PyTorch 用其他模块组成它，而官方支持列表包含 {instead}：可能可用，请实测。",
        },
    },
    "unsupported-until": {
        "rule": UNSUPPORTED,
        "severity": "info",
        "text": {
            "en": "The tables list it from {instead} on: it may work already, so try it.",
            "zh": "官方支持列表自 {instead} 起列为支持：当前版本也可能可用，请实测。",
        },
    },
    "unsupported-compile": {
        "rule": UNSUPPORTED,
        "severity": "info",
        "settled": "no-effect",
        "text": {
            "en": "It matters under `torch.compile` only; eager code is not affected.",
            "zh": "它只影响 `torch.compile`，对 eager 模式的代码没有影响。",
        },
    },
    "unsupported-switch": {
        "rule": UNSUPPORTED,
        "severity": "info",
        "text": {
            "en": "Results do not depend on it.",
            "zh": "是否设置不影响计算结果。",
        },
    },
    "unsupported-sparse": {
        "rule": UNSUPPORTED,
        "text": {
            "en": "Keep the data dense, or do this step on the CPU.",
            "zh": "请使用稠密张量，或把这一步放到 CPU 上执行。",
        },
    },
    "unsupported-shared": {
        "rule": UNSUPPORTED,
        "on_device": True,
        "text": {
            "en": "Between processes only CPU tensors can share memory.",
            "zh": "进程间只有 CPU 张量可以共享内存。",
        },
    },
    "unsupported-packed": {
        "rule": UNSUPPORTED,
        "text": {
            "en": "Pad the sequences and mask the padding instead of packing them.",
            "zh": "请补齐序列并用掩码屏蔽补齐部分，不要打包变长序列。",
        },
    },
    "unsupported-dlpack": {
        "rule": UNSUPPORTED,
        "text": {
            "en": "Hand data over in CPU memory, for example as a NumPy array.",
            "zh": "请通过 CPU 内存交换数据，例如先转成 NumPy 数组。",
        },
    },
    "may-run-on-cpu": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "It may be computed on the host CPU, with a copy there and back.",
            "zh": "可能回退到主机 CPU 上计算，数据需要来回拷贝。",
        },
    },
    "runs-on-cpu": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "It is computed on the host CPU, with a copy there and back.",
            "zh": "会在主机 CPU 上计算，数据需要来回拷贝。",
        },
    },
    "cpu-tensors": {
        "rule": LIMITED,
        "text": {
            "en": "It takes CPU tensors only.",
            "zh": "仅支持 CPU 张量。",
        },
    },
    "float32-result": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "On the NPU the result is float32 and not float64.",
            "zh": "在 NPU 上返回的是 float32，而不是 float64。",
        },
    },
    "nested-only-created": {
        "rule": LIMITED,
        "text": {
            "en": "Nested tensors can be created, but nothing can be computed with them.",
            "zh": "嵌套张量只能创建，不支持其他运算。",
        },
    },
    "context-parallel": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "It works with the fused attention only: layout BNSD, causal or no mask, "
            "no `torch.compile`.",
            "zh": "仅适用于融合注意力：BNSD 排布，掩码只能是因果掩码或没有掩码，"
            "且不能与 `torch.compile` 同用。",
        },
    },
    "npu-class": {
        "rule": LIMITED,
        "text": {"en": "Use {instead} on the NPU.", "zh": "在 NPU 上请使用 {instead}。"},
    },
    "rpc-backend": {
        "rule": LIMITED,
        "text": {
            "en": "On the NPU `{argument}` has to be {instead}.",
            "zh": "在 NPU 上必须将 `{argument}` 设为 {instead}。",
        },
    },
    "value-only": {
        "rule": LIMITED,
        "text": {
            "en": "Of `{argument}` these values are supported: {values}.",
            "zh": "参数 `{argument}` 仅支持：{values}。",
        },
    },
    "value-not": {
        "rule": LIMITED,
        "text": {
            "en": "`{argument}` set to {values} is not supported.",
            "zh": "不支持将 `{argument}` 设为 {values}。",
        },
    },
    "argument-not": {
        "rule": LIMITED,
        "text": {
            "en": "The argument `{argument}` is not supported.",
            "zh": "不支持参数 `{argument}`。",
        },
    },
    "argument-replaced": {
        "rule": LIMITED,
        "severity": "hint",
        "text": {
            "en": "The tables list `{argument}` as not supported; {instead} is.",
            "zh": "官方支持列表注明不支持参数 `{argument}`，可改用 {instead}。",
        },
    },
    "int32-indices": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "The indices come back as int32, not int64.",
            "zh": "返回的索引是 int32，而不是 int64。",
        },
    },
    "imprecise": {
        "rule": LIMITED,
        "severity": "info",
        "text": {
            "en": "With this `{argument}` results may be imprecise.",
            "zh": "`{argument}` 取此值时，结果可能存在精度误差。",
        },
    },
    "type": {"rule": TYPE},
}
"""The kinds of limits, as `docs/rule-format.md` describes them."""

# Why a fact is no rule, the weightiest reason first.
INVISIBLE = "depends on shapes, values or types that the code does not show"
SELDOM = "broken in so few calls that looking at each would cost more than it tells"
INITIALISES = "the fallback is for rare types, in calls too common to speak of each"
DETERMINISM = "matters in deterministic mode only, which other rules are about"
CONTRADICTED = "the tables contradict themselves: what it belongs to, or is, is supported"
OTHER_DEVICE = "names another vendor's device; such code is not meant for the NPU"
NO_OPERATION = "nothing runs on the device"
PORTED_CODE = "speaks of code that uses torch_npu already"
PRIVATE = "private, listed as supported; its types are test scope"
PRODUCTS = "limits other products than Atlas A2 and A3, or none: a remark"
TEST_SCOPE = "types tested; no limit, since it is no operator"
TYPE_IS_NO_MATTER = "types tested; it does not compute, so the type is no matter"
TYPES_ARE_THERE = "types tested; float64 and complex numbers are among them"
SUPPORTED = "supported without limits"
REASONS = [
    INVISIBLE,
    SELDOM,
    INITIALISES,
    DETERMINISM,
    CONTRADICTED,
    OTHER_DEVICE,
    NO_OPERATION,
    PORTED_CODE,
    PRIVATE,
    PRODUCTS,
    TEST_SCOPE,
    TYPE_IS_NO_MATTER,
    TYPES_ARE_THERE,
    SUPPORTED,
]

_LEFT_OUT = {
    CONTRADICTED: """
        torch.optim.Adadelta.step torch.optim.Adam.step torch.optim.LBFGS.step
        torch.distributed.fsdp.FullyShardedDataParallel.module torch.nn.Module.npu
        torch.func.vmap torch.nn.TransformerDecoderLayer.forward
        torch.nn.TransformerEncoderLayer.forward torch.nn.Transformer.forward torch.sum
        torch.Tensor.tensor_split
    """,
    OTHER_DEVICE: """
        torch.TypedStorage.hpu torch.TypedStorage.is_hpu torch.UntypedStorage.hpu
        torch.UntypedStorage.is_hpu torch.UntypedStorage.mps torch.nn.Module.ipu
        torch.nn.Module.xpu
    """,
    NO_OPERATION: """
        torch.onnx.OnnxExporterError torch.nn.LazyLinear.cls_to_become
        torch.is_deterministic_algorithms_warn_only_enabled
        torch.distributed.fsdp.FullyShardedDataParallel.get_state_dict_type
        torch.distributed.fsdp.FullyShardedDataParallel.rekey_optim_state_dict
    """,
}


def left_out(api: str) -> str | None:
    """Why nothing at all is said of an API."""
    return next((reason for reason, names in _LEFT_OUT.items() if api in words(names)), None)


_F = "torch.nn.functional"
_MODES = {
    "kind": "value-only",
    "only": ["nearest", "linear", "bilinear", "bicubic", "trilinear", "area"],
}
_ADVICE: dict[str, tuple[str, tuple[str, ...]]] = {
    "torch.std_mean": ("compose", ("torch.std", "torch.mean")),
    "torch.var_mean": ("compose", ("torch.var", "torch.mean")),
    "torch.fft.fftfreq": ("compose", ("torch.arange",)),
    "torch.fft.rfftfreq": ("compose", ("torch.arange",)),
    "torch.fft.fftshift": ("compose", ("torch.roll",)),
    "torch.fft.ifftshift": ("compose", ("torch.roll",)),
    "torch.nn.CosineEmbeddingLoss": ("compose", (f"{_F}.cosine_similarity",)),
    f"{_F}.gumbel_softmax": ("compose", (f"{_F}.softmax",)),
    f"{_F}.pdist": ("use", ("torch.cdist",)),
    "torch.nn.GRU": ("compose", ("torch.nn.GRUCell",)),
    "torch.nn.TransformerDecoder": ("modules", ("torch.nn.MultiheadAttention",)),
    "torch.nn.TransformerDecoder.forward": ("modules", ("torch.nn.MultiheadAttention",)),
    "torch.nn.TransformerDecoderLayer.forward": ("modules", ("torch.nn.MultiheadAttention",)),
    "torch.nn.utils.clip_grad_norm": ("use", ("torch.nn.utils.clip_grad_norm_",)),
    "torch.func.jacfwd": ("use", ("torch.autograd.functional.jacobian",)),
    "torch.func.jacrev": ("use", ("torch.autograd.functional.jacobian",)),
    "torch.func.hessian": ("use", ("torch.autograd.functional.hessian",)),
    "torch.func.vjp": ("use", ("torch.autograd.functional.vjp",)),
    "torch.func.jvp": ("use", ("torch.autograd.functional.jvp",)),
    "torch.scatter_reduce": ("other-form", ("torch.Tensor.scatter_reduce",)),
    "torch.heaviside": ("other-form", ("torch.Tensor.heaviside",)),
    "torch.nn.MaxPool1d": ("same-code", (f"{_F}.max_pool1d",)),
    f"{_F}.conv3d": ("same-code", ("torch.nn.Conv3d",)),
    "torch.nn.MaxPool3d": ("other-form", (f"{_F}.max_pool3d",)),
    "torch.nn.RReLU": ("other-form", (f"{_F}.rrelu",)),
    "torch.nn.MultiLabelMarginLoss": ("other-form", (f"{_F}.multilabel_margin_loss",)),
    f"{_F}.embedding_bag": ("other-form", ("torch.nn.EmbeddingBag",)),
    f"{_F}.triplet_margin_with_distance_loss": (
        "other-form",
        ("torch.nn.TripletMarginWithDistanceLoss",),
    ),
    f"{_F}.triplet_margin_loss": ("other-form", ("torch.nn.TripletMarginLoss",)),
    f"{_F}.multilabel_soft_margin_loss": ("other-form", ("torch.nn.MultiLabelSoftMarginLoss",)),
    "torch.from_dlpack": ("dlpack", ()),
    "torch.utils.dlpack.from_dlpack": ("dlpack", ()),
    "torch.utils.dlpack.to_dlpack": ("dlpack", ()),
    "torch.backends.opt_einsum.enabled": ("switch", ()),
    "torch.backends.opt_einsum.strategy": ("switch", ()),
    "torch.Tensor.smm": ("sparse", ()),
    "torch.Tensor.sspaddmm": ("sparse", ()),
}


UNTIL = "unsupported-until"
SAME_CODE = "unsupported-same-code"
"""A module that only calls a function, or that function: where the tables have the other, nothing
is to be changed."""


def advice(api: str) -> tuple[str, tuple[str, ...]]:
    """The kind of an unsupported API, and the names that its text gives."""
    kind, names = _ADVICE.get(api, ("", ()))
    last = api.rpartition(".")[2]
    if not kind:
        if api.startswith("torch.compiler."):
            kind = "compile"
        elif "sparse" in last:
            kind = "sparse"
        elif "share" in last:
            kind = "shared"
        elif last.startswith(("pack_", "pad_packed", "unpack_", "unpad_")):
            kind = "packed"
    return (f"unsupported-{kind}" if kind else "unsupported"), names


_ALWAYS: dict[str, dict[str, Any]] = {
    "executes on the host CPU": {"kind": "runs-on-cpu"},
    "works for CPU tensors only": {"kind": "cpu-tensors"},
    "nested tensors can be created only; no other operation": {"kind": "nested-only-created"},
    "returns fp32 instead of fp64 on NPU for now": {"kind": "float32-result"},
    "use torch_npu.distributed.rpc.options.NPUTensorPipeRpcBackendOptions instead": {
        "kind": "npu-class",
        "instead": "`torch_npu.distributed.rpc.options.NPUTensorPipeRpcBackendOptions`",
    },
}
_ARGUMENTS: dict[str, tuple[str, dict[str, int], dict[str, Any]]] = {
    "dilation must be 1": (
        "dilation",
        {f"{_F}.max_pool{n}d": 4 for n in (1, 2, 3)},
        {"kind": "value-only", "only": [1]},
    ),
    "indices come back as int32": (
        "return_indices",
        {f"{_F}.max_pool{n}d": 6 for n in (1, 2, 3)},
        {"kind": "int32-indices", "unlike": [True]},
    ),
    "dropout argument not supported": (
        "dropout",
        {"torch.nn.GRU": 5, "torch.nn.LSTM": 5},
        {"kind": "argument-not", "above": 0},
    ),
    "proj_size not supported": (
        "proj_size",
        {"torch.nn.LSTM": 7},
        {"kind": "argument-not", "above": 0},
    ),
    "log_target must be False": (
        "log_target",
        {"torch.nn.KLDivLoss": 3, f"{_F}.kl_div": 5},
        {"kind": "value-not", "unlike": [True]},
    ),
    # PyTorch's `upsample` hands all that it is given to `interpolate`, whose modes count.
    'mode "nearest" only': ("mode", {f"{_F}.upsample": 3}, _MODES),
    "modes nearest, linear, bilinear, bicubic, trilinear, area": (
        "mode",
        {f"{_F}.interpolate": 3},
        _MODES,
    ),
    "scale_factor not supported (pass size)": (
        "scale_factor",
        {f"{_F}.interpolate": 2},
        {"kind": "argument-replaced", "given": True, "instead": "`size`"},
    ),
    "sorted=False not supported": (
        "sorted",
        {"torch.topk": 4},
        {"kind": "value-not", "unlike": [False]},
    ),
    "topk indices may differ from GPU/CPU; only sorted=True results": (
        "sorted",
        {"torch.Tensor.topk": 3},
        {"kind": "value-not", "unlike": [False]},
    ),
    "fp32: error possible for window_length > 10000": (
        "window_length",
        {"torch.hann_window": 0},
        {"kind": "imprecise", "above": 10000},
    ),
    "init_rpc needs backend=BackendType.NPU_TENSORPIPE on NPU": (
        "backend",
        {"torch.distributed.rpc.init_rpc": 1},
        {"kind": "rpc-backend", "absent": True, "instead": "`BackendType.NPU_TENSORPIPE`"},
    ),
}
_SELDOM = ('approximate must be "tanh"', "precision error possible for negative p")
_REMARKS = ("info", "performance", "renamed", "named-tensor", "implicit-init", "hw-limit")
_FILLS = words("""
    bernoulli bernoulli_ clamp_ neg_ normal_ not_equal scatter scatter_ std trunc Adam logical_xor
    double ZeroPad2d TripletMarginLoss UpsamplingNearest2d HuberLoss Hardsigmoid hardswish
""")


def coded(api: str, constraint: dict[str, Any]) -> list[dict[str, Any] | str]:
    """A constraint as a limit of the table, or the reason why it is none."""
    kind, note = constraint["kind"], constraint["note"]
    if note in _ALWAYS:
        return [_ALWAYS[note]]
    if note in _ARGUMENTS:
        argument, positions, rest = _ARGUMENTS[note]
        place = {"position": positions[api]} if api in positions else {}
        return [{"kind": rest["kind"], "argument": argument, **place, **rest}]
    if kind == "may-cpu-fallback":
        return [INITIALISES if api.rpartition(".")[2] in _FILLS else {"kind": "may-run-on-cpu"}]
    if note in _SELDOM:
        return [SELDOM]
    if note.startswith("fused NPU SDPA path only"):
        return [{"kind": "context-parallel"}]
    if kind.endswith("-950dt") or kind in _REMARKS:
        return [PRODUCTS]
    return [DETERMINISM if "determinis" in note.lower() else INVISIBLE]


TYPES = {"float64": "fp64", "complex64": "complex64", "complex128": "complex128"}
"""Types that GPU code uses and operators of the NPU often lack."""
WHOLE_INPUT = (None, "input", "self")
OPERATOR_PAGES = {
    "torch.md",
    "torch-Tensor.md",
    "torch-nn-functional.md",
    "torch-linalg.md",
    "torch-fft.md",
    "torch-special.md",
}
ANY_TYPE = words("""
    T H mT mH abs_ absolute_ as_strided backward bool byte char clone contiguous conj copy_ cpu
    cuda data_ptr detach detach_ dim double float half bfloat16 int long short element_size expand
    expand_as flatten grad is_complex is_contiguous is_floating_point is_inference is_leaf
    is_pinned is_set_to is_signed is_sparse item moveaxis movedim narrow ndim ndimension nelement
    new_empty new_full new_ones new_zeros new_tensor numel numpy permute pin_memory positive
    ravel real imag record_stream register_hook requires_grad requires_grad_ reshape reshape_as
    resize_ resize_as_ resolve_conj resolve_neg result_type retain_grad retains_grad select set_
    shape size slice split squeeze squeeze_ storage storage_offset storage_type stride swapaxes
    swapdims t to tolist transpose type type_as unbind unflatten unsqueeze unsqueeze_
    untyped_storage view view_as view_as_real view_as_complex vsplit hsplit dsplit diagonal
    SymBool SymFloat SymInt sym_float sym_int sym_max sym_min sym_not is_tensor numel chunk
    as_tensor from_numpy zeros_like empty_like ones_like empty zeros ones tensor asarray
    nextafter_ data device dtype names layout itemsize nbytes output_nr is_quantized block_diag
    """)
"""Operations that do not compute with the values, or are there to change the type."""

_MODULES = {
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell",
    "pooling": "AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d "
    "MaxUnpool3d",
    "transformer": "Transformer TransformerDecoder TransformerEncoder",
    "activation": "MultiheadAttention RReLU Hardshrink Tanhshrink GELU",
    "loss": "CosineEmbeddingLoss MultiLabelMarginLoss KLDivLoss MultiMarginLoss",
    "padding": "ReflectionPad3d ReplicationPad3d",
    "conv": "ConvTranspose3d",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
}
_OTHER_SPELLINGS = {
    "torch.distributed.tensor.parallel.style.ColwiseParallel": (
        "torch.distributed.tensor.parallel.ColwiseParallel"
    ),
    "torch.distributed.tensor.parallel.style.RowwiseParallel": (
        "torch.distributed.tensor.parallel.RowwiseParallel"
    ),
    "torch.distributed.tensor.parallel.style.PrepareModuleInput": (
        "torch.distributed.tensor.parallel.PrepareModuleInput"
    ),
    "torch.distributed.tensor.parallel.api.parallelize_module": (
        "torch.distributed.tensor.parallel.parallelize_module"
    ),
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_norm": "torch.nn.utils.clip_grad_norm",
}


def spellings(known: set[str]) -> dict[str, str]:
    """The other paths at which PyTorch offers the same things."""
    found = dict(_OTHER_SPELLINGS)
    for module, names in _MODULES.items():
        for name in names.split():
            found[f"torch.nn.modules.{name}"] = f"torch.nn.{name}"
            found[f"torch.nn.modules.{module}.{name}"] = f"torch.nn.{name}"
    return {name: api for name, api in found.items() if api in known}


_POINTWISE = words("""
    abs absolute acos acosh add addcdiv addcmul angle arccos arcsin arctan asin asinh atan atan2
    atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clip conj copysign cos cosh
    deg2rad div divide eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmod
    frac ge gt heaviside hypot isclose isfinite isinf isnan ldexp le lerp lgamma log log10 log1p
    log2 logaddexp logical_and logical_not logical_or logical_xor logit lt maximum minimum mul
    multiply nan_to_num ne neg negative pow rad2deg reciprocal remainder round rsqrt sgn sigmoid
    sign sin sinc sinh sqrt square sub subtract tan tanh true_divide trunc xlogy relu
""")
_OTHERS = words("""
    addmm addmv addr all amax amin any argmax argmin argsort as_strided baddbmm bincount bmm
    bucketize cholesky clone count_nonzero cross cumprod cumsum diag diag_embed diagonal diff dot
    expand_copy flatten flip fliplr flipud gather histc index_add index_copy index_fill
    index_select inner kron logcumsumexp logsumexp masked_fill masked_select matmul matrix_power
    mean mm msort multinomial mv nanmean nansum narrow norm outer permute prod put ravel
    repeat_interleave reshape roll rot90 scatter scatter_add scatter_reduce select softmax
    log_softmax squeeze std sum swapaxes swapdims t take take_along_dim tile trace transpose tril
    triu unflatten unsqueeze var
""")
TENSORS: dict[str, set[str]] = {
    "torch": {
        *_POINTWISE,
        *_OTHERS,
        *words("""
        Tensor arange as_tensor asarray bernoulli block_diag cat cdist complex concat concatenate
        corrcoef cov dstack einsum empty empty_like empty_strided eye from_numpy frombuffer full
        full_like hann_window hamming_window hstack linspace logspace normal ones ones_like
        polar rand rand_like randint randint_like randn randn_like randperm real row_stack
        scalar_tensor searchsorted sparse_coo_tensor stack stft tensor tensordot trapezoid
        tril_indices triu_indices vander vstack zeros zeros_like column_stack
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor IntTensor LongTensor ShortTensor
        CharTensor ByteTensor BoolTensor
        """),
    },
    "torch.nn": {"Parameter"},
    "torch.nn.parameter": {"Parameter", "Buffer"},
    "torch.autograd": {"Variable"},
    "torch.Tensor": {
        *_POINTWISE,
        *_OTHERS,
        *(f"{name}_" for name in _POINTWISE),
        *words("""
        bfloat16 bool byte char contiguous cpu cuda detach double expand expand_as fill_ float half
        index_put index_put_ int long masked_fill_ masked_scatter movedim moveaxis mT T H mH data
        npu new_empty new_full new_ones new_tensor new_zeros normal_ permute pin_memory real imag
        repeat requires_grad_ reshape_as scatter_ scatter_add_ short squeeze_ to transpose_ type_as
        unfold uniform_ unsqueeze_ view view_as zero_
        """),
    },
    "torch.nn.functional": words("""
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid alpha_dropout
        avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy
        binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d
        conv_transpose2d conv_transpose3d cosine_similarity cross_entropy ctc_loss dropout
        dropout2d elu embedding fold gelu glu grid_sample group_norm hardshrink hardsigmoid
        hardswish hardtanh instance_norm interpolate kl_div l1_loss layer_norm leaky_relu linear
        log_softmax logsigmoid mish mse_loss nll_loss normalize one_hot pad pairwise_distance
        pixel_shuffle pixel_unshuffle prelu relu relu6 rms_norm scaled_dot_product_attention selu
        sigmoid silu smooth_l1_loss softmax softmin softplus softshrink softsign tanh threshold
        unfold upsample
        """),
    "torch.linalg": {"det", "inv", "matmul", "matrix_norm", "norm", "pinv", "solve", "vector_norm"},
    "torch.fft": {
        f"{real}{inverse}fft{dimensions}"
        for real in ("", "r")
        for inverse in ("", "i")
        for dimensions in ("", "2", "n")
        if not (real and inverse)
    },
}
"""What returns a tensor whatever it is called with."""

FACTS = {
    "native_api_support": "APIs of the support tables",
    "deterministic": "Operators that deterministic mode makes repeatable",
    "inf_nan": "Operators that treat infinities and NaN in their own way",
    "private_apis": "Private APIs listed as supported",
}
PAGE = """# Native APIs: what became of each fact

The support tables of torch_npu list PyTorch's own APIs release by release, 2.6 to 2.13. Not each \
fact makes a finding: one that cannot be seen in code, or would be told at every other line, only \
hides the others. Here every fact is counted once; `tests/data/native_coverage.tsv` has them by \
name.

`rule:` names the rules that tell it, `out:` the reason why none does.
"""
