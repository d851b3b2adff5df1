"""Halves of a head rotated, cut at a place that is half of something named."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = ("rotat", "def apply_rot", "def _apply_rot", "rotary(", "rope(", "rope_apply", "half")
BESIDE = ("product", "turn")
TRANSPARENT = ("cast", "contiguous")
KEEPS_TYPES = True
ONE_TYPE = ("x", "cos", "sin")
ONE_RANK = ("x", "cos", "sin")
CONDITIONS = {"x": ("heads",), "middle": ("half",)}
CHECK = {
    "en": (
        "The tensor has four dimensions, or three for packed tokens; cos and sin cover the "
        "whole head size, which is even and below 896."
    ),
    "zh": (
        "输入为四维，token 打包时为三维；cos、sin 须覆盖整个 h"
        "ead 维度，head 维度须为偶数且小于 896。"
    ),
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16), "middle": 8},
    {"x": (2, 6, 4, 32), "cos": (1, 6, 1, 32), "sin": (1, 6, 1, 32), "middle": 16},
]


def pattern(x, cos, sin, middle):
    return x * cos + torch.cat((-x[..., middle:], x[..., :middle]), dim=-1) * sin


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin)
