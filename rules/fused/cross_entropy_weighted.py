"""Cross entropy with weights, or with targets that are ignored."""

from torch.nn import functional

RULE = "NPU713"
WORDS = ("log_softmax", "LogSoftmax", "NLLLoss")
BESIDE = ("choice",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {"weights": ("tensor",), "ignored": ("not_default_index",)}
ALMOST = {
    "en": "`torch_npu.npu_cross_entropy_loss` does the log-softmax and this loss in one kernel. But with the mean it takes no weights and no other `ignore_index` than -100 while gradients are computed: ask it for the sum, and divide by the number of targets that count, or by the sum of their weights. Its logits have two dimensions and at most 200000 rows: move the classes to the end and flatten what is in front.",
    "zh": "`torch_npu.npu_cross_entropy_loss` 用一个算子完成 log-softmax 和该损失。但需要梯度且 reduction 为 mean 时，它不接受权重，也不接受 -100 以外的 `ignore_index`：可改为求和，再除以有效目标的个数或其权重之和。它的 logits 为二维，最多 200000 行：请把类别移到最后一维，并展平前面各维。",
}


def pattern(logits, target, weight, ignored, reduction, dim):
    logarithms = functional.log_softmax(logits, dim=dim)
    return functional.nll_loss(
        logarithms, target, weight, ignore_index=ignored, reduction=reduction
    )


def pattern_weighted(logits, target, weights, reduction, dim):
    logarithms = functional.log_softmax(logits, dim=dim)
    return functional.nll_loss(logarithms, target, weights, reduction=reduction)
