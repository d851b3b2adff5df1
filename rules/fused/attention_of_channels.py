"""Attention of one head over channels, with keys, and perhaps values, as (B, C, N)."""

import torch_npu
from torch.nn import functional

RULE = "NPU707"
APPLICABILITY = "unsafe"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous")
EXCLUSIVE = ("matmul", "softmax", "dropout")
CONDITIONS = {"q": ("three_dimensions",), "scale": ("scalar",)}
CHECK = {
    "en": "The operator is for training. All channels are one head, of which there may be at most 768. Query, key and value have one type, and values have no more channels than keys.",
    "zh": "该算子用于训练。全部通道构成一个 head，通道数不得超过 768。query、key、value 数据类型须相同，value 的通道数不得多于 key。",
}
YIELDS = True
FORMS = {"scaled": ("scaled", "unscaled"), "dropped": ("dropped", "kept")}
EXAMPLES = [
    {
        "q": (2, 6, 8),
        "k": (2, 8, 5),
        "whole": (2, 5, 8),
        "scale": 0.3,
        "p": 0.0,
        "training": True,
    },
    {"q": (2, 6, 8), "k": (2, 8, 5), "v": (2, 5, 8), "scale": 0.3, "p": 0.0, "training": True},
    {
        "q": (2, 6, 8),
        "k": (2, 8, 5),
        "turned": (2, 8, 5),
        "scale": 0.3,
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


def pattern(q, k, v, scale, p, training):
    return dropped(functional.softmax(scaled(q @ k, scale), dim=-1), p, training) @ v


def replacement(q, k, v, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k.transpose(1, 2),
        v,
        1,
        "BSH",
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_turned(q, k, turned, scale, p, training):
    weights = dropped(functional.softmax(scaled(q @ k, scale), dim=-1), p, training)
    return turned @ weights.transpose(-2, -1)


def replacement_turned(q, k, turned, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k.transpose(1, 2),
        turned.transpose(1, 2),
        1,
        "BSH",
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0].transpose(1, 2)


def pattern_turned_result(q, k, whole, scale, p, training):
    weights = dropped(functional.softmax(scaled(q @ k, scale), dim=-1), p, training)
    return (weights @ whole).transpose(-2, -1)


def replacement_turned_result(q, k, whole, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k.transpose(1, 2),
        whole,
        1,
        "BSH",
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0].transpose(1, 2)
