"""Attention whose mask or bias is added to the scores."""

from torch.nn import functional

RULE = "NPU707"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous")
EXCLUSIVE = ("matmul", "softmax", "dropout")
CONDITIONS = {"scale": ("scalar",), "mask, q": ("apart",)}
ALMOST = {
    "en": "Attention would be one kernel (`torch_npu.npu_fusion_attention`), but here a tensor is added to the scores, and the operator takes a boolean mask, true where left out. If it is a mask, pass on where it is negative instead; in a model of transformers choose `attn_implementation='sdpa'`. A bias has no safe form.",
    "zh": "注意力本可由一个算子（`torch_npu.npu_fusion_attention`）完成，但这里是把张量加到分数上，而该算子需要布尔掩码（True 表示屏蔽）。若加的是掩码，请改为传入其为负的位置；transformers 模型可选择 `attn_implementation='sdpa'`。若是偏置，则没有可靠的等价写法。",
}
FORMS = {
    "scaled": ("scaled", "unscaled"),
    "dropped": ("dropped", "kept"),
}


def scaled(scores, scale):
    return scores * scale


def unscaled(scores, scale):
    return scores


def dropped(weights, p, training):
    return functional.dropout(weights, p, training)


def kept(weights, p, training):
    return weights


def added(scores, mask, fill):
    return scores + mask


def pattern(q, k, v, scale, mask, fill, p, training):
    scores = added(scaled(q @ k.transpose(-2, -1), scale), mask, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v


def pattern_if_given(q, k, v, scale, given, mask, fill, p, training):
    scores = scaled(q @ k.transpose(-2, -1), scale)
    if given is not None:
        scores = added(scores, mask, fill)
    return dropped(functional.softmax(scores, dim=-1), p, training) @ v
