"""SwiGLU: the first half of a projection, through SiLU, gates the second."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("silu", "SiLU", "swish", "sigmoid")
TRANSPARENT = ("contiguous",)
CONDITIONS = {}
CHECK = {
    "en": "With separate tensors the operator needs them in one: the copy costs memory, unless the two projections are merged.",
    "zh": "两个独立张量需先拼接，拼接会占用额外显存；如可能，请把两个投影合并为一个。",
}
EXAMPLES = [
    {"x": (2, 5, 64)},
    {"x": (3, 16)},
    {"gate": (2, 5, 32), "up": (2, 5, 32)},
    {"gate": (3, 8), "up": (3, 8)},
]


def pattern(x):
    gate, up = x.chunk(2, dim=-1)
    return functional.silu(gate) * up


def replacement(x):
    return torch_npu.npu_swiglu(x, dim=-1)


def pattern_separate(gate, up):
    return functional.silu(gate) * up


def replacement_separate(gate, up):
    return torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)
