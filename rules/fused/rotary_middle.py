"""Halves of a head rotated, cut at a place that is half of something named."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = ("rotat", "def apply_rot", "def _apply_rot", "rotary(", "rope", "half")
BESIDE = ("product", "turn")
TRANSPARENT = ("cast", "contiguous")
KEEPS_TYPES = True
ONE_TYPE = ("x", "cos", "sin", "narrow_cos", "narrow_sin")
ONE_RANK = ("x", "cos", "sin", "narrow_cos", "narrow_sin")
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
    {"x": (2, 6, 4, 32), "narrow_cos": (1, 6, 1, 16), "narrow_sin": (1, 6, 1, 16), "middle": 16},
]


def pattern(x, cos, sin, middle):
    return x * cos + torch.cat((-x[..., middle:], x[..., :middle]), dim=-1) * sin


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin)


def pattern_narrow(x, narrow_cos, narrow_sin, middle):
    first, second = x[..., :middle], x[..., middle:]
    return torch.cat(
        (first * narrow_cos - second * narrow_sin, second * narrow_cos + first * narrow_sin),
        dim=-1,
    )


def replacement_narrow(x, narrow_cos, narrow_sin):
    return torch_npu.npu_rotary_mul(
        x, torch.cat((narrow_cos,) * 2, dim=-1), torch.cat((narrow_sin,) * 2, dim=-1)
    )


def pattern_narrow_back(x, narrow_cos, narrow_sin, middle):
    first, second = x[..., :middle], x[..., middle:]
    return torch.cat(
        (first * narrow_cos + second * narrow_sin, second * narrow_cos - first * narrow_sin),
        dim=-1,
    )


def replacement_narrow_back(x, narrow_cos, narrow_sin):
    return torch_npu.npu_rotary_mul(
        x, torch.cat((narrow_cos,) * 2, dim=-1), -torch.cat((narrow_sin,) * 2, dim=-1)
    )
