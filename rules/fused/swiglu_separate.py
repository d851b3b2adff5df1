"""SwiGLU of two tensors, as two projections give them, or a gate beside a state space model."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("silu", "SiLU(", "swish(", "sigmoid(", "Swish(", "exp(-")
BESIDE = ("product", "silu")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"gate, up": ("alike",)}
CHECK = {
    "en": "The operator wants both tensors in one, and joining them costs memory and time, unless one projection gives both: merge the two projections where you can, and measure. Both must have the same shape, nothing broadcast, and the same type.",
    "zh": "该算子要求两个张量合为一个，拼接有显存与时间开销，除非由一个投影同时给出：请尽可能合并两个投影，并实测。两者形状须相同（不能依赖广播），数据类型须一致。",
}
EXAMPLES = [
    {"gate": (2, 5, 32), "up": (2, 5, 32)},
    {"gate": (3, 8), "up": (3, 8)},
]


def pattern(gate, up):
    return functional.silu(gate) * up


def replacement(gate, up):
    return torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)
