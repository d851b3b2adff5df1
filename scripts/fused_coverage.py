"""Why a fact of `affinity_api.json` is no rule, for `make_coverage_page.py`."""

from typing import Any

_TOOL = "a setting or a tool of the NPU; nothing in GPU code computes it"
_DETECTION = "a kernel for detection; NPU715 offers those of torch_npu.contrib that are maintained"
_LAYER = "a kernel that PyTorch's own layer or function calls on the NPU, or its older form"
_ENGINE = "for inference engines or single models; its arguments are theirs"
_COLLECTIVE = "joins a product and a collective; needs the process group of the caller"

_BY_BEGINNING = (
    ("mindspeed.", "part of MindSpeed, which Megatron is ported with"),
    ("torch_npu.npu.amp.", "what NPU301 and NPU303 write, under its longer name"),
    ("torch_npu.profiler.", "the profiler of the NPU; NPU502 names it for that of CUDA"),
    ("torch_npu.npu.", _TOOL),
    ("torch_npu.utils.", _TOOL),
    ("torch_npu.jit.", _TOOL),
    ("torch_npu.distributed.", _TOOL),
)
_BY_PART = (
    ("npugraph_tensor erase_stream prefetch format swapped_memory checksum", _TOOL),
    ("quant Quant A8W8 int4pack", "for quantised inference"),
    ("iou nms roi overlaps yolo anchor bounding_box grid_assign random_choice", _DETECTION),
    ("conv Conv DCN npu_linear lstm gru LSTM batch_norm bmmV2 dropout _adam multi_head", _LAYER),
    ("indexing npu_max npu_min one_ npu_pad reshape slice sort_v2 transpose broadcast", _LAYER),
    ("dtype_cast scatter sim_exponential sign_bits softmax_cross layer_norm_eval copy_", _LAYER),
    ("SiLU Swish Mish", _LAYER),
    ("mla_prolog _cache lightning sparse_flash block_sparse floyd advance_step", _ENGINE),
    ("delta_rule attention_to attention_update ffn_to attention_score _sample mhc", _ENGINE),
    ("all_to_all alltoall mm_re mm_all all_gather", _COLLECTIVE),
    ("float_status", "overflow flags, which `GradScaler` reads itself"),
)
_BY_KERNEL = "the kernel behind it is deprecated"
_OFF_UNTIL_ENABLED = "it drops nothing until it is enabled for the model, then in evaluation too"
_NO_NAME = "stands in for code that has no name to look up"
_LEFT_OUT = {
    "torch_npu.contrib.module.NpuFairseqDropout": _OFF_UNTIL_ENABLED,
    "torch_npu.contrib.module.NpuCachedDropout": _OFF_UNTIL_ENABLED,
    "torch_npu.contrib.module.DropoutWithByteMask": _BY_KERNEL,
    "torch_npu.contrib.module.MultiheadAttention": _BY_KERNEL,
    "torch_npu.contrib.module.LabelSmoothingCrossEntropy": _BY_KERNEL,
    "torch_npu.contrib.module.PSROIPool": _BY_KERNEL,
    "torch_npu.contrib.function.npu_fused_attention": _BY_KERNEL,
    "torch_npu.contrib.function.fuse_add_softmax_dropout": _BY_KERNEL,
    "torch_npu.contrib.function.npu_multiclass_nms": _BY_KERNEL,
    "torch_npu.contrib.function.npu_batched_multiclass_nms": _BY_KERNEL,
    "torch_npu.contrib.function.npu_single_level_responsible_flags": _BY_KERNEL,
    "torch_npu.contrib.function.npu_bbox_coder_encode_yolo": _BY_KERNEL,
    "torch_npu.contrib.function.npu_bbox_coder_encode_xyxy2xywh": _BY_KERNEL,
    "torch_npu.contrib.function.npu_bbox_coder_decode_xywh2xyxy": _BY_KERNEL,
    "torch_npu.contrib.module.ChannelShuffle": _NO_NAME,
    "torch_npu.contrib.module.Prefetcher": _NO_NAME,
    "torch_npu.contrib.module.Focus": "its activation is not that of today's Focus",
    "torch_npu.contrib.module.FastBatchNorm1d": "private",
    "torch_npu.contrib.module.FastBatchNorm2d": "private",
    "torch_npu.contrib.module.FastBatchNorm3d": "private",
    "torch_npu.contrib.module.FastSyncBatchNorm": "private",
    "torch_npu.optim.NpuFusedLamb": "named by NPU603 for apex; its options are others",
    "torch_npu.optim.NpuFusedOptimizerBase": "a base class, not used as it is",
    "torch_npu.contrib.function.matmul_transpose": "nobody says what it gains over torch.matmul",
    "torch_npu.fast_gelu": "npu_fast_gelu under its older name",
    "torch_npu.npu_gelu_mul": "has no backward pass; npu_geglu has",
    "torch_npu.npu_silu": "deprecated in favour of torch.nn.functional.silu",
    "torch_npu.npu_mish": "deprecated in favour of torch.nn.functional.mish",
    "torch_npu.npu_ffn": "has no backward pass, and takes weights transposed",
    "mindspeed.core.fusions.fused_bias_swiglu.fused_swiglu": "calls npu_swiglu, which is offered",
    "torch_npu.npu_fused_cross_entropy_loss_with_max_sum": "part of a hand-written backward pass",
    "torch_npu.npu_fusion_attention_v3": (
        "npu_fusion_attention, which is offered, for captured graphs"
    ),
    "torch_npu.npu_group_norm_swish": "not built yet: GroupNorm followed by SiLU",
    "torch_npu.npu_moe_token_unpermute": (
        "the way back from npu_moe_token_permute, which NPU712 names"
    ),
    "torch_npu.npu_gather_sparse_index": (
        "not built yet: whether an index is sparse is not in the code"
    ),
    "torch_npu.contrib.function.roll": "rolls two fixed dimensions whatever it is told",
    "torch_npu.contrib.function.npu_fast_condition_index_put": (
        "torch.where, which NPU803 proposes, under another name"
    ),
}
_NO_COUNTERPART = "no computation of PyTorch is known that it stands for"
_NO_BACKWARD = "has no backward pass, and its arguments are those of an inference engine"


def reason(fact: dict[str, Any]) -> str:
    """Why a fused operator, or a tool that is listed with them, is proposed by no rule."""
    name = fact["api"]
    if name in _LEFT_OUT:
        return _LEFT_OUT[name]
    if fact.get("deprecated"):
        return "deprecated"
    for beginning, why in _BY_BEGINNING:
        if name.startswith(beginning):
            return why
    for parts, why in _BY_PART:
        if any(part in name for part in parts.split()):
            return why
    if fact.get("trainable") is False:
        return _NO_BACKWARD
    return _NO_COUNTERPART if not fact.get("replaces") else "not built yet"
