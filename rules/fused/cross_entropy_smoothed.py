"""Cross entropy by hand, with smoothed labels or with targets as rows of zeros and a one."""

from torch.nn import functional

RULE = "NPU713"
APPLICABILITY = "manual"
OPERATOR = "torch_npu.npu_cross_entropy_loss"
WORDS = ("log_softmax", "LogSoftmax", "logsumexp", "log(")
BESIDE = ("product", "softmax or exponent")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"at": ("may_be_last_of_two",), "by": ("may_be_last_of_two",)}
CHECK = {
    "en": "First write `torch.nn.functional.cross_entropy(logits, target, label_smoothing=...)`, with class numbers as target: it is the same if the two factors of smoothing add up to one. The operator takes that sum without smoothing only while gradients are computed, so it replaces the loss where smoothing is 0.",
    "zh": "请先改写为 `torch.nn.functional.cross_entropy(logits, target, label_smoothing=...)`，目标用类别编号：当平滑的两个系数之和为 1 时结果相同。需要梯度时该算子不支持标签平滑，因此只能在平滑系数为 0 时用它代替该损失。",
}


def pattern(logits, target, confidence, smoothing):
    logarithms = functional.log_softmax(logits, dim=-1)
    chosen = -logarithms.gather(-1, target.unsqueeze(1)).squeeze(1)
    return (confidence * chosen + smoothing * -logarithms.mean(-1)).mean()


def pattern_last(logits, target, confidence, smoothing):
    logarithms = functional.log_softmax(logits, dim=-1)
    chosen = -logarithms.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return (confidence * chosen + smoothing * -logarithms.mean(-1)).mean()


def pattern_rows(logits, target, classes, at, by):
    rows = functional.one_hot(target, classes)
    return -(rows * functional.log_softmax(logits, dim=at)).sum(by).mean()


def pattern_rows_added(logits, target, classes, at, by):
    rows = functional.one_hot(target, classes)
    return -(rows * functional.log_softmax(logits, dim=at)).sum(by)
