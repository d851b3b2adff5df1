"""RMSNorm with a gain, as Llama and its descendants write it."""

import torch
import torch_npu

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("rsqrt", "mean(", ").sqrt(", "torch.sqrt(")
BESIDE = ("product or quotient", "root")
TRANSPARENT = ("cast", "contiguous")
ONE_TYPE = ("x", "weight")
MAY_BE_FLOAT32 = ("weight",)
CONDITIONS = {"x": ("not_centred",), "weight": ("parameter", "row"), "eps": ("number",)}
CHECK = {
    "en": "The operator computes in float32, rounds once and returns the type of its input: in half precision the last digits change.",
    "zh": "该算子内部以 float32 计算，只舍入一次，返回值与输入的数据类型一致：半精度下末位会有差异。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "weight": (64,), "eps": 1e-6},
    {"x": (3, 64), "weight": (64,), "eps": 1e-5},
    {"x": (4, 32), "weight": (32,), "eps": 0.1},
]


def pattern(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def pattern_and_itself(x, weight, eps):
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return normed + normed * weight


def replacement_and_itself(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight + 1.0, epsilon=eps)[0]


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
