"""Neighbours of a head rotated, as GPT-J does; cos and sin have each value twice."""

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
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16)},
    {"x": (2, 6, 4, 32), "cos": (1, 6, 1, 32), "sin": (1, 6, 1, 32)},
]


def pattern(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return x * cos + torch.stack((-odd, even), dim=-1).flatten(-2) * sin


def replacement(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin, rotary_mode="interleave")
