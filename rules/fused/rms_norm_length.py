"""RMSNorm by the length of a vector: the epsilon is a lower bound or is missing."""

import torch
from torch.nn import functional

RULE = "NPU701"
WORDS = (
    "rsqrt",
    "mean(",
    "torch.norm(",
    ").sqrt(",
    "torch.sqrt(",
    "linalg.norm(",
    "vector_norm(",
    ".norm(2",
    ".norm(p=2",
    ".norm(dim",
    "F.normalize(",
    "functional.normalize(",
)
BESIDE = ("product or quotient", "root")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {
    "x": ("not_centred",),
    "weight": ("parameter",),
    "scale": ("number",),
    "least": ("number",),
}
ALMOST = {
    "en": "It is almost RMSNorm, if the factor is the root of the width: but the length is bounded from below, while `torch_npu.npu_rms_norm` adds `epsilon` to the mean square. The results differ for very small activations only; compare before you change it.",
    "zh": "如果该系数是宽度的平方根，这几乎就是 RMSNorm：但这里对长度取下限，而 `torch_npu.npu_rms_norm` 把 `epsilon` 加在均方上。只有激活值非常小时结果才不同；修改前请先比较。",
}


def pattern(x, scale, weight, least):
    return functional.normalize(x, dim=-1, eps=least) * scale * weight


def pattern_shifted(x, scale, weight, least):
    return functional.normalize(x, dim=-1, eps=least) * scale * (weight + 1)


def pattern_bounded_square(x, weight, least):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True).clamp(min=least)) * weight


def pattern_bounded(x, scale, weight, least):
    length = torch.norm(x, dim=-1, keepdim=True) * scale
    return x / length.clamp(min=least) * weight
