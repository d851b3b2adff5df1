"""RMSNorm by PyTorch's own function or module, which run as several kernels on the NPU."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("rms_norm(", "nn.RMSNorm(", "= RMSNorm(")
TRANSPARENT = ("contiguous",)
ONE_TYPE = ("x", "weight")
MAY_BE_FLOAT32 = ("weight",)
CONDITIONS = {"weight": ("tensor",), "eps": ("number",)}
CHECK = {
    "en": "The operator takes the weight itself: hooks on a norm module, also those that gather sharded weights, no longer run. No weight may be `None`.",
    "zh": "算子直接使用权重：归一化模块上的钩子（包括收集分片权重的钩子）不再执行。权重不能为 `None`。",
}
EXAMPLES = [
    {"x": (2, 5, 16), "shape": [16], "weight": (16,), "eps": 1e-5},
    {"x": (3, 4, 8), "shape": [4, 8], "weight": (4, 8), "eps": 1e-2},
    {"x": (2, 5, 16), "shape": [16], "weight": (16,)},
]


def pattern(x, shape, weight, eps):
    return functional.rms_norm(x, shape, weight, eps)


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]


def pattern_default_epsilon(x, shape, weight):
    return functional.rms_norm(x, shape, weight, None)


def replacement_default_epsilon(x, weight):
    return torch_npu.npu_rms_norm(x, weight, epsilon=torch.finfo(x.dtype).eps)[0]
