"""Causal attention written out: a triangle masks what comes later."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU707"
APPLICABILITY = "unsafe"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous")
EXCLUSIVE = ("matmul", "softmax", "dropout", "masked_fill")
CONDITIONS = {
    "q": ("four_dimensions",),
    "scale": ("scalar",),
    "fill": ("lowest",),
    "mask": ("causal",),
    "mask_at_end": ("causal_at_end",),
}
CHECK = {
    "en": "The operator is for training. Query, key and value have four dimensions and one type. The triangle of 2048 x 2048 stands for one of any size: make it once and keep it, if this runs often.",
    "zh": "该算子用于训练。query、key、value 须为四维且数据类型相同。2048 x 2048 的三角掩码代表任意大小；若频繁执行，请只创建一次并保留。",
}
FORMS = {"scaled": ("scaled", "unscaled"), "dropped": ("dropped", "kept")}
EXAMPLES = [
    {
        "q": (2, 3, 6, 8),
        "k": (2, 3, 6, 8),
        "v": (2, 3, 6, 8),
        "scale": 0.3,
        "mask": ("above", 1, 6, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (2, 3, 4, 8),
        "k": (2, 3, 6, 8),
        "v": (2, 3, 6, 8),
        "scale": 0.3,
        "mask": ("above", 1, 4, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (2, 3, 6, 8),
        "k": (2, 3, 6, 8),
        "v": (2, 3, 6, 8),
        "scale": 0.3,
        "mask_at_end": ("above", 1, 6, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (2, 3, 4, 8),
        "k": (2, 3, 6, 8),
        "v": (2, 3, 6, 8),
        "scale": 0.3,
        "mask_at_end": ("above", 3, 4, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
]


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def kept(weights, p, training):
    return weights


def pattern(q, k, v, scale, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale).masked_fill(mask, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement(q, k, v, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.ones(2048, 2048, dtype=torch.bool, device=q.device).triu(1),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
        sparse_mode=2,
    )[0]


def pattern_at_end(q, k, v, scale, mask_at_end, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale).masked_fill(mask_at_end, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_at_end(q, k, v, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.ones(2048, 2048, dtype=torch.bool, device=q.device).triu(1),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
        sparse_mode=3,
    )[0]
