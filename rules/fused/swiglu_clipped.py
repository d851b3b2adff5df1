"""The clipped SwiGLU of GPT-OSS: the operator for it cannot be trained with."""

import torch

RULE = "NPU703"
WORDS = ("sigmoid(",)
BESIDE = ("product", "silu")
TRANSPARENT = ("contiguous", "cast")
CONDITIONS = {}
ALMOST = {
    "en": "This is a clipped SwiGLU. `torch_npu.npu_clipped_swiglu` computes it, of interleaved parts as well, but has no backward pass: it is for inference. `torch_npu.npu_swiglu` has neither limit nor factor and is no replacement.",
    "zh": "这是带截断的 SwiGLU。`torch_npu.npu_clipped_swiglu` 可以计算（也支持交错排列），但没有反向，只能用于推理；`torch_npu.npu_swiglu` 没有截断和系数，不能替换。",
}


def pattern(gate, up, alpha, low, high, top):
    gate = gate.clamp(min=None, max=high)
    up = up.clamp(min=low, max=top)
    return (up + 1) * (gate * torch.sigmoid(gate * alpha))
