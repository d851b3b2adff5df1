"""Rotary position embedding whose two products are scaled as well, as xPos does."""

import torch
import torch_npu

RULE = "NPU706"
APPLICABILITY = "manual"
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
CONDITIONS = {"x": ("heads",)}
CHECK = {
    "en": 'Multiply cos and sin by the scale, once for all layers, and turn with these: `torch_npu.npu_rotary_mul(x, cos * scale, sin * scale)`, with "interleave" as `rotary_mode` where neighbours are turned. Both tables have the type of the tensor and as many dimensions, and cover the whole head size, which is even and below 896.',
    "zh": '请先把 cos、sin 乘上该缩放系数（所有层共用一次），再用结果旋转：`torch_npu.npu_rotary_mul(x, cos * scale, sin * scale)`；旋转相邻元素时 `rotary_mode` 取 "interleave"。两张表须与输入同类型、同维数，并覆盖整个 head 维度，head 维度须为偶数且小于 896。',
}
EXAMPLES = [
    {"x": (2, 4, 6, 16), "cos": (1, 1, 6, 16), "sin": (1, 1, 6, 16), "scale": 0.5},
]


def pattern(x, cos, sin, scale):
    first, second = torch.chunk(x, 2, dim=-1)
    return x * cos * scale + torch.cat((-second, first), dim=-1) * sin * scale


def replacement(x, cos, sin, scale):
    return torch_npu.npu_rotary_mul(x, cos * scale, sin * scale)


def pattern_interleaved(x, cos, sin, scale):
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((-odd, even), dim=-1).flatten(-2)
    return x * cos * scale + turned * sin * scale


def replacement_interleaved(x, cos, sin, scale):
    return torch_npu.npu_rotary_mul(x, cos * scale, sin * scale, rotary_mode="interleave")
