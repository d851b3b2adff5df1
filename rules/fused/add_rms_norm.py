"""A residual sum and the RMSNorm of it, where no gradients are needed."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU702"
APPLICABILITY = "manual"
WITHOUT_GRADIENT = True
WORDS = (
    "rsqrt",
    "mean(",
    ").sqrt(",
    "torch.sqrt(",
    "rms_norm(",
    "nn.RMSNorm(",
    "= RMSNorm(",
)
BESIDE = ("sum", "root or norm")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {
    "residual": ("tensor", "not_negative"),
    "x": ("tensor", "not_negative"),
    "weight": ("parameter", "row"),
    "eps": ("number",),
}
CHECK = {
    "en": "It returns three tensors, the second of which is not needed: `normed, _, total = torch_npu.npu_add_rms_norm(residual, x, weight, epsilon)`. Both tensors and the weight must have one data type and the tensors one shape. There is no backward pass.",
    "zh": "它返回三个张量，其中第二个用不到：`normed, _, total = torch_npu.npu_add_rms_norm(residual, x, weight, epsilon)`。两个张量与权重的数据类型必须相同，两个张量的形状也必须相同。该算子没有反向传播。",
}
EXAMPLES = [
    {"residual": (2, 5, 64), "x": (2, 5, 64), "weight": (64,), "eps": 1e-6},
    {"residual": (3, 32), "x": (3, 32), "weight": (32,), "eps": 0.1},
    {"residual": (3, 32), "x": (3, 32), "shape": [32], "weight": (32,), "eps": 1e-5},
]


def pattern(residual, x, weight, eps):
    total = residual + x
    return weight * (total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + eps))


def pattern_function(residual, x, shape, weight, eps):
    return functional.rms_norm(residual + x, shape, weight, eps)


def replacement(residual, x, weight, eps):
    return torch_npu.npu_add_rms_norm(residual, x, weight, epsilon=eps)[0]
