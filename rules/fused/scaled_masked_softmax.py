"""Scores that are scaled and masked before softmax, without a product behind it."""

import torch_npu
from torch.nn import functional

RULE = "NPU710"
APPLICABILITY = "manual"
WORDS = ("softmax", "Softmax")
BESIDE = ("mask", "lowest")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"scale": ("scalar",), "fill": ("lowest",)}
CHECK = {
    "en": "The last two sizes must be multiples of 32 from 32 to 4096, and the mask boolean; that true means masked out is not documented, so compare the results once.",
    "zh": "最后两维须为 32 的倍数且在 32 到 4096 之间，掩码须为布尔型；文档未写明 True 即屏蔽，请先比对一次结果。",
}
FORMS = {"scaled": ("scaled", "unscaled")}
EXAMPLES = [
    {"x": (2, 3, 32, 64), "scale": 0.3, "mask": ("bool", 2, 1, 32, 64), "fill": -1e9},
]


def scaled(x, scale):
    return x * scale


def unscaled(x, scale):
    return x


def pattern(x, scale, mask, fill):
    return functional.softmax(scaled(x, scale).masked_fill(mask, fill), dim=-1)


def replacement(x, mask, scale=1.0):
    return torch_npu.npu_scaled_masked_softmax(x, mask, scale, False)
