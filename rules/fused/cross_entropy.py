"""Cross entropy by hand: a log-softmax, then the value at the target."""

import torch
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
EXAMPLES = [{"logits": (6, 11), "target": ("int", 11, 6)}]


def pattern(logits, target):
    return functional.nll_loss(functional.log_softmax(logits, dim=-1), target)


def replacement(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target)[0].squeeze(0)


def pattern_of_classes(logits, target):
    return functional.nll_loss(functional.log_softmax(logits, dim=1), target)


def replacement_of_classes(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target)[0].squeeze(0)


def pattern_sum(logits, target):
    return functional.nll_loss(functional.log_softmax(logits, dim=-1), target, reduction="sum")


def replacement_sum(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target, reduction="sum")[0].squeeze(0)


def pattern_each(logits, target):
    return functional.nll_loss(functional.log_softmax(logits, dim=-1), target, reduction="none")


def replacement_each(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target, reduction="none")[0]


def pattern_mean_gathered(logits, target):
    chosen = functional.log_softmax(logits, dim=-1).gather(-1, target.unsqueeze(-1))
    return -chosen.squeeze(-1).mean()


def replacement_mean_gathered(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_chosen(logits, target):
    chosen = functional.log_softmax(logits, dim=-1).gather(-1, target.unsqueeze(-1))
    return chosen.squeeze(-1)


def replacement_chosen(logits, target):
    return -torch_npu.npu_cross_entropy_loss(
        logits.flatten(0, -2), target.flatten(), reduction="none"
    )[0].view_as(target)


def pattern_mean_of_rows(logits, target):
    chosen = functional.log_softmax(logits, dim=-1).gather(1, target.unsqueeze(1))
    return -chosen.squeeze(1).mean()


def replacement_mean_of_rows(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target)[0].squeeze(0)


def pattern_mean_of_column(logits, target):
    return -functional.log_softmax(logits, dim=-1).gather(-1, target.unsqueeze(-1)).mean()


def replacement_mean_of_column(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_parts(logits, target):
    total = torch.logsumexp(logits, dim=-1, keepdim=True)
    return (total - logits.gather(-1, target.unsqueeze(-1))).mean()


def replacement_mean_of_parts(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_flat_parts(logits, target):
    total = torch.logsumexp(logits, dim=-1)
    return (total - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)).mean()


def replacement_mean_of_flat_parts(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)
