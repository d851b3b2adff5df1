"""RMSNorm with a gain, as Llama and its descendants write it."""

import torch
import torch_npu

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("rsqrt", "sqrt", "0.5")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"weight": ("parameter",), "eps": ("number",)}
CHECK = {
    "en": "The operator computes in float32 and rounds once, at the end: in half precision the last digits change.",
    "zh": "该算子内部以 float32 计算，最后只舍入一次：半精度下末位会有差异。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "weight": (64,), "eps": 1e-6},
    {"x": (3, 64), "weight": (64,), "eps": 1e-5},
    {"x": (4, 32), "weight": (32,), "eps": 0.1},
]


def pattern(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
