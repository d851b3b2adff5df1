"""Halves or neighbours of a head rotated, as a flag says."""

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
        "The tensor has four dimensions, or three for packed tokens. In this mode cos and sin "
        "have size one wherever it is not the sequence or the head, so they cannot differ "
        "between samples or heads; together they cover just the sequence and the head, whose "
        "size is even and below 896."
    ),
    "zh": (
        "输入为四维，token 打包时为三维。在此模式下，cos、sin 除"
        "序列和 head 维度外大小均须为 1，因此不同样本或 head 不"
        "能使用不同的 cos、sin；它们须恰好覆盖序列和 head 维度，"
        "head 维度须为偶数且小于 896。"
    ),
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16), "interleaved": True},
    {"x": (2, 6, 4, 32), "cos": (1, 6, 1, 32), "sin": (1, 6, 1, 32), "interleaved": False},
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16), "halves": True},
    {"x": (2, 6, 4, 32), "cos": (1, 6, 1, 32), "sin": (1, 6, 1, 32), "halves": False},
]


def pattern(x, cos, sin, interleaved):
    if interleaved:
        even, odd = x[..., 0::2], x[..., 1::2]
        rotated = torch.stack((-odd, even), dim=-1).flatten(-2)
    else:
        first, second = torch.chunk(x, 2, dim=-1)
        rotated = torch.cat((-second, first), dim=-1)
    return x * cos + rotated * sin


def pattern_halves(x, cos, sin, halves):
    if halves:
        first, second = torch.chunk(x, 2, dim=-1)
        rotated = torch.cat((-second, first), dim=-1)
    else:
        even, odd = x[..., 0::2], x[..., 1::2]
        rotated = torch.stack((-odd, even), dim=-1).flatten(-2)
    return x * cos + rotated * sin


def replacement(x, cos, sin, interleaved):
    return torch_npu.npu_rotary_mul(x, cos, sin, "interleave" if interleaved else "half")


def replacement_halves(x, cos, sin, halves):
    return torch_npu.npu_rotary_mul(x, cos, sin, "half" if halves else "interleave")
