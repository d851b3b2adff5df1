"""Halves of a head rotated part by part; cos and sin have half the head size."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = (
    "rotat",
    "def apply_rot",
    "def _apply_rot",
    "rotary(",
    "apply_rotary_emb(",
    "rotary_emb_func(",
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
BESIDE = ("product or rotation", "turn")
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
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 8), "sin": (1, 1, 6, 8)},
    {"x": (2, 6, 4, 32), "cos": (2, 6, 1, 16), "sin": (2, 6, 1, 16)},
]


def pattern(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, torch.cat((cos,) * 2, dim=-1), torch.cat((sin,) * 2, dim=-1))


def pattern_back(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cos + second * sin, second * cos - first * sin), dim=-1)


def replacement_back(x, cos, sin):
    return torch_npu.npu_rotary_mul(
        x, torch.cat((cos,) * 2, dim=-1), -torch.cat((sin,) * 2, dim=-1)
    )


def pattern_of_four(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=3)


def pattern_back_of_four(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cos + second * sin, second * cos - first * sin), dim=3)


def replacement_back_of_four(x, cos, sin):
    return torch_npu.npu_rotary_mul(
        x, torch.cat((cos,) * 2, dim=-1), -torch.cat((sin,) * 2, dim=-1)
    )


def pattern_apart(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.cat((even * cos - odd * sin, odd * cos + even * sin), dim=-1)


def replacement_apart(x, cos, sin):
    return torch_npu.npu_rotary_mul(
        torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1),
        torch.cat((cos,) * 2, dim=-1),
        torch.cat((sin,) * 2, dim=-1),
    )
