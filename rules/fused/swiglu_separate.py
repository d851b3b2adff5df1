"""SwiGLU of two tensors, as two projections give them."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("silu", "SiLU", "swish", "sigmoid", "Swish", "exp(-")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"gate, up": ("projections",)}
CHECK = {
    "en": "The operator wants both tensors in one: the copy costs memory, unless the two projections are merged. They must have one shape and type.",
    "zh": "该算子要求把两个张量拼成一个：除非合并两个投影，否则拼接会占用额外显存。两者的形状和数据类型须一致。",
}
EXAMPLES = [
    {"gate": (2, 5, 32), "up": (2, 5, 32)},
    {"gate": (3, 8), "up": (3, 8)},
]


def pattern(gate, up):
    return functional.silu(gate) * up


def replacement(gate, up):
    return torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)
