"""Cross entropy by hand, as the divergence from rows with a large value at the target."""

from torch.nn import functional

RULE = "NPU713"
APPLICABILITY = "manual"
OPERATOR = "torch_npu.npu_cross_entropy_loss"
WORDS = ("log_softmax", "LogSoftmax")
BESIDE = ("spread",)
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"rows": ("spreads_targets",)}
CHECK = {
    "en": "First write `torch.nn.functional.cross_entropy(logits, target, label_smoothing=...)`, with class numbers as target. A divergence is the same up to a constant; where the smoothed value is shared by the other K - 1 classes, the smoothing there is K / (K - 1) of the one here. The operator takes no smoothing while gradients are computed with the mean, so it replaces the loss where smoothing is 0.",
    "zh": "请先改写为 `torch.nn.functional.cross_entropy(logits, target, label_smoothing=...)`，目标用类别编号。KL 散度与它只差一个常数；若平滑值由其余 K - 1 类均分，则那里的平滑系数是这里的 K / (K - 1) 倍。需要梯度且 reduction 为 mean 时该算子不支持标签平滑，因此只能在平滑系数为 0 时用它代替该损失。",
}


def pattern(logits, rows, dim, reduction):
    logarithms = functional.log_softmax(logits, dim=dim)
    return functional.kl_div(logarithms, rows, reduction=reduction)


def pattern_product(logits, rows, dim, over):
    return -(rows * functional.log_softmax(logits, dim=dim)).sum(over)


def pattern_negative(logits, rows, dim, over):
    return (-rows * functional.log_softmax(logits, dim=dim)).sum(over)


def pattern_mean_first(logits, rows, dim):
    return (-rows * functional.log_softmax(logits, dim=dim)).mean(0).sum()
