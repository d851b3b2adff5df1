"""Attention written out for tensors of three dimensions: batch and heads are one of them."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU707"
APPLICABILITY = "unsafe"
WORDS = ("softmax", "Softmax")
TRANSPARENT = ("cast", "contiguous")
EXCLUSIVE = ("matmul", "softmax", "dropout", "masked_fill")
CONDITIONS = {
    "q": ("three_dimensions",),
    "scale": ("scalar",),
    "fill": ("lowest",),
}
CHECK = {
    "en": "The operator is for training. Query, key and value have three dimensions and one type. A row that is masked as a whole is not defined.",
    "zh": "该算子用于训练。query、key、value 须为三维且数据类型相同。整行都被屏蔽时结果未定义。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "masked": ("masked", "unmasked"),
    "dropped": ("dropped", "kept"),
}
EXAMPLES = [
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "mask": ("bool", 6, 1, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "mask": ("bool", 6, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "given": (1,),
        "mask": ("bool", 6, 1, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "given": None,
        "mask": ("bool", 6, 1, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "wanted": True,
        "mask": ("bool", 6, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
    {
        "q": (6, 6, 8),
        "k": (6, 6, 8),
        "v": (6, 6, 8),
        "scale": 0.3,
        "wanted": False,
        "mask": ("bool", 6, 1, 6),
        "fill": -1e9,
        "p": 0.0,
        "training": True,
    },
]


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def masked(scores, mask, fill):
    return scores.masked_fill(mask, fill)


def unmasked(scores, mask, fill):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def kept(weights, p, training):
    return weights


def pattern(q, k, v, scale, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = masked(scores, mask, fill)
    weights = dropped(functional.softmax(scores, dim=-1), p, training)
    return weights @ v


def replacement(q, k, v, scale=1.0, mask=None, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=torch.broadcast_to(mask, (q.shape[0], q.shape[1], k.shape[1])).unsqueeze(1),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_if_given(q, k, v, scale, given, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = masked(scores, mask, fill)
    weights = dropped(functional.softmax(scores, dim=-1), p, training)
    return weights @ v


def replacement_if_given(q, k, v, scale=1.0, given=None, mask=None, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=None
        if given is None
        else torch.broadcast_to(mask, (q.shape[0], q.shape[1], k.shape[1])).unsqueeze(1),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_if_wanted(q, k, v, scale, wanted, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if wanted:
        scores = masked(scores, mask, fill)
    weights = dropped(functional.softmax(scores, dim=-1), p, training)
    return weights @ v


def replacement_if_wanted(q, k, v, scale=1.0, wanted=False, mask=None, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=torch.broadcast_to(mask, (q.shape[0], q.shape[1], k.shape[1])).unsqueeze(1)
        if wanted
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]
