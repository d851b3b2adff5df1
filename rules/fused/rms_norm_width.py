"""RMSNorm whose mean is a sum divided by the width that the gain was made with."""

import torch
import torch_npu

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("rsqrt", ").sqrt(", "torch.sqrt(", "norm(")
BESIDE = ("product or quotient", "root", "gain")
TRANSPARENT = ("cast", "contiguous")
ONE_TYPE = ("x", "weight")
MAY_BE_FLOAT32 = ("weight",)
CONDITIONS = {
    "x": ("not_centred",),
    "weight": ("parameter", "row"),
    "eps": ("number",),
    "weight, width": ("made of",),
}
CHECK = {
    "en": "The operator computes in float32, rounds once and returns the type of its input: in half precision the last digits change.",
    "zh": "该算子内部以 float32 计算，只舍入一次，返回值与输入的数据类型一致：半精度下末位会有差异。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "weight": (64,), "width": 64, "eps": 1e-6},
    {"x": (4, 32), "weight": (32,), "width": 32, "eps": 0.1},
]


def pattern(x, weight, width, eps):
    return weight * (x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / width + eps))


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
