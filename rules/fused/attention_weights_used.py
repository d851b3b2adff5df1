"""Attention whose scores or weights have another use."""

from torch.nn import functional

RULE = "NPU707"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"scale": ("scalar",), "mask, q": ("apart",)}
ALMOST = {
    "en": "Attention would be one kernel (`torch_npu.npu_fusion_attention`), but its weights are used besides, mostly returned, and the operator does not give them. If the caller does not need them, return none; in a model of transformers choose `attn_implementation='sdpa'`, which runs as one kernel on the NPU with a boolean mask or none.",
    "zh": "注意力本可由一个算子（`torch_npu.npu_fusion_attention`）完成，但其权重另有用途（多为返回值），而该算子不提供权重。若调用方不需要权重，请不要返回；transformers 模型可选择 `attn_implementation='sdpa'`，在 NPU 上配合布尔掩码或不用掩码时由一个算子执行。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "masked": ("masked", "filled", "unmasked"),
    "dropped": ("dropped", "dropped_if_given", "kept"),
}


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def dropped_if_given(weights, p, training):
    return weights if training is None else training(weights)


def kept(weights, p, training):
    return weights


def masked(scores, mask, fill):
    return scores + mask


def filled(scores, mask, fill):
    return scores.masked_fill(mask, fill)


def unmasked(scores, mask, fill):
    return scores


def pattern(q, k, v, scale, mask, fill, p, training):
    scores = masked(scaled(q @ k.transpose(-2, -1), scale), mask, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def pattern_if_given(q, k, v, scale, given, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = masked(scores, mask, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def pattern_channels(q, turned_k, v, scale, p, training):
    scores = scaled(q @ turned_k, scale)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def pattern_turned(q, turned_k, v, scale, p, training):
    scores = scaled(q @ turned_k, scale)
    return v @ dropped(functional.softmax(scores, dim=-1), p, training).transpose(-2, -1)
