"""Attention written out, with heads before the sequence, as most code has it."""

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
    "turned_k": ("shows_four_dimensions",),
    "scale": ("scalar",),
    "fill": ("lowest",),
}
CHECK = {
    "en": "The operator is for training. Query, key and value have four dimensions and one type. A row that is masked as a whole is not defined. A mask without heads can be given as (B, 1, Sq, Skv), which takes less memory.",
    "zh": "该算子用于训练。query、key、value 须为四维且数据类型相同。整行都被屏蔽时结果未定义。不分 head 的掩码可按 (B, 1, Sq, Skv) 传入，更省显存。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "masked": ("masked", "masked_if_given", "masked_if_wanted", "unmasked"),
    "dropped": ("dropped", "kept"),
}
TENSORS = {"q": (2, 3, 6, 8), "k": (2, 3, 6, 8), "v": (2, 3, 6, 8)}
TURNED = {"q": (2, 3, 6, 8), "turned_k": (2, 3, 8, 6), "v": (2, 3, 6, 8)}
NUMBERS = {"scale": 0.3, "fill": -1e9, "p": 0.0, "training": True}
EXAMPLES = [
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 6), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 6, 6), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 6), "given": None, "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 6), "given": (1,), "wanted": False},
    {**TURNED, **NUMBERS, "mask": ("bool", 2, 1, 1, 6), "given": (1,), "wanted": True},
    {**TURNED, **NUMBERS, "mask": ("bool", 6, 6), "given": None, "wanted": True},
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
        q.shape[1],
        "BNSD",
        atten_mask=None
        if given is None
        else torch.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        if wanted
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_turned(q, turned_k, v, scale, given, wanted, mask, fill, p, training):
    scores = masked(scaled(q @ turned_k, scale), mask, fill, given, wanted)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_turned(
    q, turned_k, v, scale=1.0, given=None, wanted=False, mask=None, p=0.0, training=False
):
    return torch_npu.npu_fusion_attention(
        q,
        turned_k.transpose(2, 3),
        v,
        q.shape[1],
        "BNSD",
        atten_mask=None
        if given is None
        else torch.broadcast_to(mask, (*q.shape[:3], turned_k.shape[3]))
        if wanted
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]
