"""SiLU of one half times the other: SwiGLU on one tensor or on a gate and a value."""

import torch
import torch.nn.functional as F
import torch_npu

RULE = "NPU703"
WORDS = ("silu", "SiLU", "swish", "sigmoid")
TRANSPARENT = ("contiguous",)
CONDITIONS = {}
CHECK = {
    "en": "Joining both tensors costs memory; one projection for both avoids that.",
    "zh": "拼接两个张量会占用额外显存；将两个投影合并为一个可以避免。",
}
EXAMPLES = [
    {"gate": (2, 5, 32), "value": (2, 5, 32), "x": (2, 5, 64)},
    {"gate": (7, 16), "value": (7, 16), "x": (7, 32)},
]


def pattern_halves(x):
    gate, value = torch.chunk(x, 2, dim=-1)
    return F.silu(gate) * value


def replacement_halves(x):
    return torch_npu.npu_swiglu(x, dim=-1)


def pattern(gate, value):
    return F.silu(gate) * value


def replacement(gate, value):
    return torch_npu.npu_swiglu(torch.cat((gate, value), dim=-1), dim=-1)
