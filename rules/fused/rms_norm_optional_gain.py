"""RMSNorm by a module of PyTorch that has a gain only if its constructor is told so."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("nn.RMSNorm(", "= RMSNorm(")
TRANSPARENT = ("contiguous",)
ONE_TYPE = ("x", "weight")
MAY_BE_FLOAT32 = ("weight",)
CONDITIONS = {"weight": ("tensor",), "given": ("tensor",), "eps": ("number",)}
CHECK = {
    "en": "Where `elementwise_affine` is false the module has no gain, and the operator gets ones. It takes the weight itself: hooks on a norm module, also those that gather sharded weights, no longer run.",
    "zh": "`elementwise_affine` 为假时模块没有增益，此时向算子传入全 1 张量。算子直接使用权重：归一化模块上的钩子（包括收集分片权重的钩子）不再执行。",
}
EXAMPLES = [
    {"x": (2, 5, 16), "shape": [16], "given": (16,), "weight": (16,), "eps": 1e-5},
    {"x": (3, 4, 8), "shape": [4, 8], "given": None, "weight": None, "eps": 1e-2},
    {"x": (2, 5, 16), "shape": [16], "given": None, "weight": None},
]


def pattern(x, shape, given, weight, eps):
    return functional.rms_norm(x, shape, None if given is None else weight, eps)


def replacement(x, shape, given, weight, eps):
    return torch_npu.npu_rms_norm(x, x.new_ones(shape) if given is None else weight, epsilon=eps)[0]


def pattern_default_epsilon(x, shape, given, weight):
    return functional.rms_norm(x, shape, None if given is None else weight, None)


def replacement_default_epsilon(x, shape, given, weight):
    return torch_npu.npu_rms_norm(
        x,
        x.new_ones(shape) if given is None else weight,
        epsilon=torch.finfo(x.dtype).eps,
    )[0]
