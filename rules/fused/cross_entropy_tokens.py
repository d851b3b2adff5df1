"""Logarithms of the probabilities of tokens, for logits of three dimensions."""

import torch_npu
from torch.nn import functional

RULE = "NPU713"
APPLICABILITY = "unsafe"
WORDS = ("log_softmax", "LogSoftmax", "logsumexp", "log(")
BESIDE = ("choice",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {}
CHECK = {
    "en": "The operator takes logits of two dimensions with at most 200000 rows, and targets of int64.",
    "zh": "该算子接收二维 logits，最多 200000 行，目标须为 int64。",
}
EXAMPLES = [{"logits": (2, 3, 11), "target": ("int", 11, 2, 3)}]


def pattern(logits, target):
    return functional.log_softmax(logits, dim=-1).gather(2, target.unsqueeze(2)).squeeze(2)


def replacement(logits, target):
    return -torch_npu.npu_cross_entropy_loss(
        logits.flatten(0, -2), target.flatten(), reduction="none"
    )[0].view_as(target)
