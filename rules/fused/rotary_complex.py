"""Neighbours of a head taken as complex numbers and turned, as the first Llama does."""

import torch
import torch_npu

RULE = "NPU706"
WORDS = ("view_as_complex", "torch.complex(")
BESIDE = ("product",)
TRANSPARENT = ("cast", "contiguous")
KEEPS_TYPES = True
CONDITIONS = {"x": ("heads",)}
CHECK = {
    "en": (
        "The operator wants the tensor, cos and sin in one data type and with equally many "
        "dimensions (four, or three for packed tokens); in this mode cos and sin have size "
        "one wherever it is not the sequence or the head, so they cannot differ between "
        "samples or heads. Together they cover just the sequence and the head, whose size is even and "
        "below 896."
    ),
    "zh": (
        "该算子要求输入、cos 和 sin 的数据类型和维数相同（四维，token "
        "打包时为三维）；在此模式下，cos、sin 除序列和 head 维度外大小均"
        "须为 1，因此不同样本或 head 不能使用不同的 cos、sin。head 维度须为偶数"
        "且小于 896。"
    ),
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "turns": ("complex", 1, 1, 6, 8)},
    {"x": (2, 6, 4, 32), "turns": ("complex", 1, 6, 1, 16)},
]


def pattern(x, turns):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)


def replacement(x, turns):
    return torch_npu.npu_rotary_mul(
        x, turns.real.repeat_interleave(2, -1), turns.imag.repeat_interleave(2, -1), "interleave"
    )
