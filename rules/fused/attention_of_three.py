"""Attention written out for tensors of three dimensions: batch and heads are one of them."""

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
    "q": ("three_dimensions",),
    "scale": ("scalar",),
    "fill": ("lowest",),
    "heads": ("not_the_rest",),
}
CHECK = {
    "en": "The operator is for training. Query, key and value have three dimensions and one type. A row that is masked as a whole is not defined.",
    "zh": "该算子用于训练。query、key、value 须为三维且数据类型相同。整行都被屏蔽时结果未定义。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "masked": ("masked", "masked_if_given", "masked_if_wanted", "unmasked"),
    "dropped": ("dropped", "kept"),
}
TENSORS = {"q": (6, 6, 8), "k": (6, 6, 8), "v": (6, 6, 8)}
SIZES = {"batch": 2, "heads": 3, "rows": 6, "keys": 6, "whole": 6, "rows_too": 6, "keys_too": 6}
NUMBERS = {"scale": 0.3, "fill": -1e9, "p": 0.0, "training": True}
EXAMPLES = [
    {**TENSORS, **NUMBERS, "mask": ("bool", 6, 1, 6), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 6, 6), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 6, 1, 6), "given": None, "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 6, 1, 6), "given": (1,), "wanted": False},
    {**TENSORS, **NUMBERS, **SIZES, "part": ("bool", 2, 1, 1, 6)},
    {**TENSORS, **NUMBERS, **SIZES, "part": ("bool", 2, 1, 1, 6), "given": None},
    {**TENSORS, **NUMBERS, **SIZES, "part": ("bool", 6, 6), "given": (1,)},
]


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def masked(scores, mask, fill, given, wanted):
    return scores.masked_fill(mask, fill)


def masked_if_given(scores, mask, fill, given, wanted):
    if given is not None:
        scores = scores.masked_fill(mask, fill)
    return scores


def masked_if_wanted(scores, mask, fill, given, wanted):
    if wanted:
        scores = scores.masked_fill(mask, fill)
    return scores


def unmasked(scores, mask, fill, given, wanted):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def kept(weights, p, training):
    return weights


def pattern(q, k, v, scale, given, wanted, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = masked(scores, mask, fill, given, wanted)
    weights = dropped(functional.softmax(scores, dim=-1), p, training)
    return weights @ v


def replacement(q, k, v, scale=1.0, given=None, wanted=False, mask=None, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=None
        if given is None
        else torch.broadcast_to(mask, (q.shape[0], q.shape[1], k.shape[1])).unsqueeze(1)
        if wanted
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def in_heads(scores, batch, heads, rows, keys, part, fill, whole, rows_too, keys_too):
    scores = scores.view(batch, heads, rows, keys).masked_fill(part, fill)
    return scores.view(whole, rows_too, keys_too)


def pattern_in_heads(
    q, k, v, scale, batch, heads, rows, keys, part, fill, whole, rows_too, keys_too, p, training
):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = in_heads(scores, batch, heads, rows, keys, part, fill, whole, rows_too, keys_too)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_in_heads(q, k, v, heads, part, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=torch.broadcast_to(
            part, (q.shape[0] // heads, heads, q.shape[1], k.shape[1])
        ).reshape(q.shape[0], 1, q.shape[1], k.shape[1]),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_in_heads_if_given(
    q,
    k,
    v,
    scale,
    given,
    batch,
    heads,
    rows,
    keys,
    part,
    fill,
    whole,
    rows_too,
    keys_too,
    p,
    training,
):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = in_heads(scores, batch, heads, rows, keys, part, fill, whole, rows_too, keys_too)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_in_heads_if_given(q, k, v, given, heads, part, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        1,
        "BSH",
        atten_mask=None
        if given is None
        else torch.broadcast_to(part, (q.shape[0] // heads, heads, q.shape[1], k.shape[1])).reshape(
            q.shape[0], 1, q.shape[1], k.shape[1]
        ),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]
