"""RMSNorm by a module of PyTorch in whose place there may be `nn.Identity()`."""

import torch_npu
from torch.nn import functional

RULE = "NPU701"
APPLICABILITY = "manual"
WORDS = ("nn.RMSNorm(", "= RMSNorm(")
TRANSPARENT = ("contiguous",)
CHECK = {
    "en": "The operator is for those instances alone that have a norm: elsewhere `nn.Identity()` is in its place. In `forward` ask for that, or give a class of your own to the constructor whose `forward` calls the operator with its weight. Without a gain pass ones.",
    "zh": "只有带归一化的实例才能用该算子，其余实例在此处是 `nn.Identity()`。可在 `forward` 中加以判断，或在构造函数中改用自己的类，由其 `forward` 以自身权重调用该算子。没有增益时传入全 1 张量。",
}
EXAMPLES = [
    {"x": (2, 5, 16), "shape": [16], "weight": (16,), "eps": 1e-5, "wanted": True},
    {"x": (2, 5, 16), "shape": [16], "weight": (16,), "eps": 1e-5, "wanted": False},
]


def pattern(x, shape, weight, eps, wanted):
    return functional.rms_norm(x, shape, weight, eps) if wanted else x


def replacement(x, weight, eps, wanted):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0] if wanted else x


def pattern_unwanted(x, shape, weight, eps, wanted):
    return x if wanted else functional.rms_norm(x, shape, weight, eps)


def replacement_unwanted(x, weight, eps, wanted):
    return x if wanted else torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
