"""Neighbours of a head turned by a product with a matrix of two rows for each pair."""

import torch

RULE = "NPU706"
WORDS = ("rotat", "rope", "Rope", "RoPE", "Rotary")
BESIDE = ("product or matrix product",)
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {}
ALMOST = {
    "en": 'A product with a matrix for each pair of neighbours: if it turns them by an angle, it is a rotary embedding, and `torch_npu.npu_rotary_mul(x, cos, sin, "interleave")` needs no matrices. Keep cos and sin in place of them, each value twice (`repeat_interleave(2, -1)`), with the type of the tensor and as many dimensions.',
    "zh": '每一对相邻元素与一个矩阵相乘：如果该矩阵表示旋转，这就是旋转位置编码，用 `torch_npu.npu_rotary_mul(x, cos, sin, "interleave")` 即可，无需矩阵。请改为保存 cos 和 sin，每个值重复两次（`repeat_interleave(2, -1)`），类型和维数与输入一致。',
}


def pattern(x, recipe, matrices):
    pairs = x.unflatten(-1, (-1, 2))
    return torch.einsum(recipe, matrices, pairs).flatten(-2)


def pattern_after(x, recipe, matrices):
    pairs = x.unflatten(-1, (-1, 2))
    return torch.einsum(recipe, pairs, matrices).flatten(-2)


def pattern_columns(x, matrices):
    even, odd = x[..., 0::2].unsqueeze(-1), x[..., 1::2].unsqueeze(-1)
    return matrices[..., 0] * even + matrices[..., 1] * odd


def pattern_multiplied(x, matrices):
    pairs = x.unflatten(-1, (-1, 2))
    return (matrices @ pairs.unsqueeze(-1)).squeeze(-1).flatten(-2)
