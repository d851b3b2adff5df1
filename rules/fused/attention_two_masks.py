"""Attention written out with two boolean masks, such as a causal one and one of padding."""

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
    "other": ("lowest",),
}
CHECK = {
    "en": "The operator is for training. Query, key and value have four dimensions and one type, and both masks are boolean. A row that is masked as a whole is not defined.",
    "zh": "该算子用于训练。query、key、value 须为四维且数据类型相同，两个掩码均为布尔型。整行都被屏蔽时结果未定义。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "dropped": ("dropped", "kept"),
}
TENSORS = {"q": (2, 3, 6, 8), "k": (2, 3, 6, 8), "v": (2, 3, 6, 8)}
NUMBERS = {"scale": 0.3, "fill": -1e9, "other": -1e9, "p": 0.0, "training": True}
MASKS = {"one": ("above", 1, 6, 6), "mask": ("above", 4, 1, 6)}
EXAMPLES = [
    {**TENSORS, **NUMBERS, **MASKS},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": True},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": False},
    {**TENSORS, **NUMBERS, **MASKS, "given": (1,)},
    {**TENSORS, **NUMBERS, **MASKS, "given": None},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": True, "given": (1,)},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": True, "given": None},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": False, "given": (1,)},
    {**TENSORS, **NUMBERS, **MASKS, "wanted": False, "given": None},
]


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def kept(weights, p, training):
    return weights


def pattern(q, k, v, scale, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = scores.masked_fill(one, fill)
    scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement(q, k, v, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(one | mask, (*q.shape[:3], k.shape[2])),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_first_if_wanted(q, k, v, scale, wanted, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if wanted:
        scores = scores.masked_fill(one, fill)
    scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_first_if_wanted(q, k, v, wanted, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            (one if wanted else False) | mask, (*q.shape[:3], k.shape[2])
        ),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_first_if_given(q, k, v, scale, given, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = scores.masked_fill(one, fill)
    scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_first_if_given(q, k, v, given, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            (one if given is not None else False) | mask, (*q.shape[:3], k.shape[2])
        ),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_second_if_given(q, k, v, scale, given, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = scores.masked_fill(one, fill)
    if given is not None:
        scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_second_if_given(q, k, v, given, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            one | (mask if given is not None else False), (*q.shape[:3], k.shape[2])
        ),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_both_if(q, k, v, scale, wanted, given, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if wanted:
        scores = scores.masked_fill(one, fill)
    if given is not None:
        scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_both_if(q, k, v, wanted, given, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            (one if wanted else False) | (mask if given is not None else False),
            (*q.shape[:3], k.shape[2]),
        )
        if wanted or given is not None
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_both_if_given_first(q, k, v, scale, wanted, given, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = scores.masked_fill(mask, other)
    if wanted:
        scores = scores.masked_fill(one, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_both_if_given_first(
    q, k, v, wanted, given, one, mask, scale=1.0, p=0.0, training=False
):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            (one if wanted else False) | (mask if given is not None else False),
            (*q.shape[:3], k.shape[2]),
        )
        if wanted or given is not None
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]


def pattern_second_if_wanted(q, k, v, scale, wanted, one, fill, mask, other, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    scores = scores.masked_fill(one, fill)
    if wanted:
        scores = scores.masked_fill(mask, other)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def replacement_second_if_wanted(q, k, v, wanted, one, mask, scale=1.0, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q,
        k,
        v,
        q.shape[1],
        "BNSD",
        atten_mask=torch.broadcast_to(
            one | (mask if wanted else False), (*q.shape[:3], k.shape[2])
        ),
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0]
