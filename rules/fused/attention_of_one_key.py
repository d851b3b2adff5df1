"""Multi-query attention by einsum: one key and one value for all heads."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU707"
APPLICABILITY = "unsafe"
WORDS = ("einsum",)
BESIDE = ("softmax",)
TRANSPARENT = ("cast", "contiguous")
EXCLUSIVE = ("shared_matmul", "softmax", "dropout", "masked_fill")
CONDITIONS = {"scale": ("scalar",), "fill": ("lowest",)}
CHECK = {
    "en": "The operator is for training. Since all heads share key and value, they are queries of one head to it. Query, key and value have one type, and values are no wider than keys.",
    "zh": "该算子用于训练。所有 head 共享 key 与 value，因此可视为同一个 head 的多个 query。query、key、value 数据类型须相同，value 的宽度不得大于 key。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "masked": ("masked", "masked_if_given", "masked_if_wanted", "unmasked"),
    "dropped": ("dropped", "kept"),
}
TENSORS = {"q": (2, 6, 3, 8), "k": (2, 5, 8), "v": (2, 5, 8)}
NUMBERS = {"scale": 0.3, "fill": -1e9, "p": 0.0, "training": True}
EXAMPLES = [
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 5), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 3, 5), "given": (1,), "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 5), "given": None, "wanted": True},
    {**TENSORS, **NUMBERS, "mask": ("bool", 2, 1, 1, 5), "given": (1,), "wanted": False},
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
    scores = scaled(torch.einsum("bnhk,bmk->bnhm", q, k), scale)
    scores = masked(scores, mask, fill, given, wanted)
    weights = dropped(functional.softmax(scores, dim=-1), p, training)
    return torch.einsum("bnhm,bmv->bnhv", weights, v)


def replacement(q, k, v, scale=1.0, given=None, wanted=False, mask=None, p=0.0, training=False):
    return torch_npu.npu_fusion_attention(
        q.flatten(1, 2),
        k,
        v,
        1,
        "BSH",
        atten_mask=None
        if given is None
        else torch.broadcast_to(mask, (*q.shape[:3], k.shape[1])).flatten(1, 2).unsqueeze(1)
        if wanted
        else None,
        scale=scale,
        keep_prob=1.0 - p if training else 1.0,
    )[0].unflatten(1, q.shape[1:3])
