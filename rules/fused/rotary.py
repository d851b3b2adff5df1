"""Rotary position embedding, halves of a head rotated; cos and sin have the whole head size."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = (
    "rotat",
    "def apply_rot",
    "def _apply_rot",
    "rotary(",
    "rope",
    "rot(",
    "def rot",
    "freqs_c",
    "* sin",
    "* self.sin",
    "sin_cache",
    "chunk(2",
    "cat((-",
    "cat([-",
    "stack((-",
    "stack([-",
)
BESIDE = ("product", "turn")
TRANSPARENT = ("cast", "contiguous")
KEEPS_TYPES = True
ONE_TYPE = ("x", "cos", "sin")
ONE_RANK = ("x", "cos", "sin")
CONDITIONS = {"x": ("heads",)}
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
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16)},
    {"x": (2, 4, 6, 32), "cos": (2, 1, 6, 32), "sin": (2, 1, 6, 32)},
    {"x": (2, 6, 4, 16), "cos": (1, 6, 1, 16), "sin": (1, 6, 1, 16)},
    {"x": (7, 4, 16), "cos": (7, 1, 16), "sin": (7, 1, 16)},
]


def pattern(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin)
