"""SwiGLU of interleaved parts: gate and value in turn, where the operator wants two halves."""

from torch.nn import functional

RULE = "NPU703"
WORDS = ("::2",)
BESIDE = ("product", "silu")
TRANSPARENT = ("contiguous",)
CONDITIONS = {}
ALMOST = {
    "en": "Gate and value stand in turn here, and `torch_npu.npu_swiglu` takes the first half for the gate: with it as it is, results are wrong. Reorder the rows of the projection's weight when a checkpoint is loaded, all gates first; then the operator fits.",
    "zh": "此处门控与数值交错排列，而 `torch_npu.npu_swiglu` 把前一半当作门控，直接替换结果会出错。在加载检查点时重排投影权重的行、使门控全部在前，即可使用该算子。",
}


def pattern(x):
    return functional.silu(x[..., ::2]) * x[..., 1::2]


def pattern_gate_second(x):
    return x[..., ::2] * functional.silu(x[..., 1::2])
