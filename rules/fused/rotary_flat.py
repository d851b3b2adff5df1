"""Neighbours of all heads rotated before the heads are told apart."""

import torch

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
ALMOST = {
    "en": (
        "`npu_rotary_mul` rotates neighbours of four-dimensional tensors only, with the same "
        "cos and sin for all samples and heads; here heads are not told apart yet."
    ),
    "zh": (
        "`npu_rotary_mul` 的相邻元素旋转只支持四维张量，且所有样本和"
        " head 共用 cos、sin；这里尚未拆分出 head 维度。"
    ),
}


def pattern(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return x * cos + torch.stack((-odd, even), dim=-1).flatten(2) * sin
