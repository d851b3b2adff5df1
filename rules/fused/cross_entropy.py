"""Cross entropy by hand: a log-softmax, then the value at the target."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU713"
APPLICABILITY = "unsafe"
WORDS = ("log_softmax", "LogSoftmax", "logsumexp", "log(", "NLLLoss", "gather(")
BESIDE = ("choice", "softmax or exponent")
TRANSPARENT = ("contiguous",)
EXCLUSIVE = ("log_softmax",)
CONDITIONS = {
    "at": ("may_be_last",),
    "by": ("may_be_last",),
    "place": ("may_be_last",),
    "third": ("third",),
    "out": ("may_be_last_or_none",),
    "rows": ("number",),
    "classes": ("may_be_last_of_two",),
    "columns": ("may_be_last_of_two",),
}
CHECK = {
    "en": "The operator takes logits of two dimensions with at most 200000 rows, and targets of int64.",
    "zh": "该算子接收二维 logits，最多 200000 行，目标须为 int64。",
}
TENSORS = {"logits": (6, 11), "target": ("int", 11, 6)}
LAST = {"at": -1, "by": -1}
EXAMPLES = [
    {**TENSORS, "classes": -1},
    {**TENSORS, "given_rows": 6, "last": 11},
    {**TENSORS, "columns": 1, "at": 1},
    {"logits": (6, 11), "target": ("int", 11, 2, 3), "columns": 1, "at": 1},
    {**TENSORS, "columns": -1, "at": -1},
    {**TENSORS, **LAST},
    {**TENSORS, **LAST, "out": -1},
    {**TENSORS, **LAST, "place": -1},
    {"logits": (2, 3, 11), "target": ("int", 11, 2, 3), "third": 2, "by": 2},
    {**TENSORS, "rows": 6, "classes": -1},
    {**TENSORS, "rows": 6, "classes": 1},
]


def pattern(logits, target, classes):
    return functional.nll_loss(functional.log_softmax(logits, dim=classes), target)


def replacement(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target)[0].squeeze(0)


def pattern_of_rows_given(logits, target, given_rows, last):
    logarithms = functional.log_softmax(logits, dim=-1).reshape(given_rows, last)
    return functional.nll_loss(logarithms, target)


def replacement_of_rows_given(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target)[0].squeeze(0)


def pattern_sum(logits, target, classes):
    logarithms = functional.log_softmax(logits, dim=classes)
    return functional.nll_loss(logarithms, target, reduction="sum")


def replacement_sum(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target, reduction="sum")[0].squeeze(0)


def pattern_each(logits, target, classes):
    logarithms = functional.log_softmax(logits, dim=classes)
    return functional.nll_loss(logarithms, target, reduction="none")


def replacement_each(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target, reduction="none")[0]


def pattern_chosen(logits, target, at, by, place):
    chosen = functional.log_softmax(logits, dim=-1).gather(at, target.unsqueeze(by))
    return chosen.squeeze(place)


def replacement_chosen(logits, target):
    return -torch_npu.npu_cross_entropy_loss(
        logits.flatten(0, -2), target.flatten(), reduction="none"
    )[0].view_as(target)


def pattern_chosen_of_three(logits, target, third, by):
    chosen = functional.log_softmax(logits, dim=third).gather(third, target.unsqueeze(by))
    return chosen.squeeze(-1)


def replacement_chosen_of_three(logits, target):
    return -torch_npu.npu_cross_entropy_loss(
        logits.flatten(0, -2), target.flatten(), reduction="none"
    )[0].view_as(target)


def pattern_mean_of_flat(logits, target, at, by, out):
    chosen = functional.log_softmax(logits, dim=-1).gather(at, target.unsqueeze(by))
    return -chosen.squeeze(out).mean()


def replacement_mean_of_flat(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_column(logits, target, at, by):
    return -functional.log_softmax(logits, dim=-1).gather(at, target.unsqueeze(by)).mean()


def replacement_mean_of_column(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_parts(logits, target, at, by):
    total = torch.logsumexp(logits, dim=-1, keepdim=True)
    return (total - logits.gather(at, target.unsqueeze(by))).mean()


def replacement_mean_of_parts(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_flat_parts(logits, target, at, by, out):
    total = torch.logsumexp(logits, dim=-1)
    return (total - logits.gather(at, target.unsqueeze(by)).squeeze(out)).mean()


def replacement_mean_of_flat_parts(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_difference(logits, target, at, by, out):
    total = torch.logsumexp(logits, dim=-1)
    return -(logits.gather(at, target.unsqueeze(by)).squeeze(out) - total).mean()


def replacement_mean_of_difference(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits.flatten(0, -2), target.flatten())[0].squeeze(0)


def pattern_mean_of_rows(logits, target, rows, classes):
    return -functional.log_softmax(logits, dim=classes)[torch.arange(rows), target].mean()


def replacement_mean_of_rows(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target)[0].squeeze(0)


def pattern_of_rows(logits, target, rows, classes):
    return -functional.log_softmax(logits, dim=classes)[torch.arange(rows), target]


def replacement_of_rows(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target, reduction="none")[0]


def pattern_chosen_in_a_row(logits, target, columns, at):
    chosen = functional.log_softmax(logits, dim=columns).gather(at, target.reshape(-1, 1))
    return chosen.reshape(-1)


def replacement_chosen_in_a_row(logits, target):
    return -torch_npu.npu_cross_entropy_loss(logits, target.flatten(), reduction="none")[0]


def pattern_mean_in_a_row(logits, target, columns, at):
    chosen = functional.log_softmax(logits, dim=columns).gather(at, target.reshape(-1, 1))
    return -chosen.reshape(-1).mean()


def replacement_mean_in_a_row(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target.flatten())[0].squeeze(0)


def pattern_column(logits, target, columns, at):
    return functional.log_softmax(logits, dim=columns).gather(at, target.reshape(-1, 1))


def replacement_column(logits, target):
    return -torch_npu.npu_cross_entropy_loss(logits, target.flatten(), reduction="none")[
        0
    ].unsqueeze(-1)


def pattern_column_of_losses(logits, target, columns, at):
    return -functional.log_softmax(logits, dim=columns).gather(at, target.reshape(-1, 1))


def replacement_column_of_losses(logits, target):
    return torch_npu.npu_cross_entropy_loss(logits, target.flatten(), reduction="none")[
        0
    ].unsqueeze(-1)
