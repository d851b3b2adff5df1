"""RMSNorm with a gain: Llama and its descendants, T5, Gemma with its gain of one plus a weight."""

import torch
import torch_npu

RULE = "NPU701"
WORDS = ("rsqrt", "sqrt", "0.5")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"weight": ("parameter",), "eps": ("number",)}
CHECK = {
    "en": "The operator computes in float32 and returns the type of its input.",
    "zh": "该算子内部以 float32 计算，结果的数据类型与输入相同。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "weight": (64,), "eps": 1e-6},
    {"x": (3, 4, 7, 32), "weight": (32,), "eps": 1e-5},
    {"x": (3, 64), "weight": (64,), "eps": 1e-6},
]


def pattern(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
