"""Halves of a head taken as complex numbers and turned."""

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
        "dimensions (four, or three for packed tokens). cos and sin cover the whole head size, "
        "which is even and below 896."
    ),
    "zh": (
        "该算子要求输入、cos 和 sin 的数据类型和维数相同（四维，token 打包时为三维）。"
        "cos、sin 须覆盖整个 head 维度，head 维度须为偶数且小于 896。"
    ),
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "turns": ("complex", 1, 1, 6, 8)},
    {"x": (2, 6, 4, 32), "turns": ("complex", 1, 6, 1, 16)},
]


def pattern(x, turns):
    halves = x.reshape(*x.shape[:-1], 2, -1).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(halves.contiguous()) * turns)
    return turned.transpose(-1, -2).flatten(-2)


def pattern_stacked(x, turns):
    halves = torch.stack(torch.chunk(x, 2, dim=-1), dim=-1)
    turned = torch.view_as_real(torch.view_as_complex(halves) * turns)
    return torch.cat(torch.chunk(turned, 2, dim=-1), dim=-2).flatten(-2)


def replacement(x, turns):
    return torch_npu.npu_rotary_mul(
        x, torch.cat((turns.real,) * 2, dim=-1), torch.cat((turns.imag,) * 2, dim=-1)
    )
