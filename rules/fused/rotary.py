"""Rotary position embedding, the two halves of a head rotated."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = ("rotat", "rotary", "rope", "chunk(2", "// 2")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {}
CHECK = {
    "en": "The operator takes four dimensions, and a head size that is even and below 896.",
    "zh": "该算子要求输入为四维，且 head 维度为偶数并小于 896。",
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16)},
    {"x": (2, 4, 6, 32), "cos": (2, 1, 6, 32), "sin": (2, 1, 6, 32)},
]


def pattern(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin)
