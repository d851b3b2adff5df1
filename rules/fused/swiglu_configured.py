"""A gated unit whose activation is configured: SwiGLU if that is SiLU."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("ACT2FN", "get_activation", "act(", "act_fn", "activation(", "activation_f", "act_layer")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"act": ("activation",), "gate, up": ("projections",), "dim": ("number",)}
CHECK = {
    "en": "The configured activation must be SiLU: with any other this is no SwiGLU. Two tensors are joined by a copy, which merging the two projections saves.",
    "zh": "配置的激活函数必须是 SiLU，否则这里不是 SwiGLU。两个张量需先拼接；合并两个投影可省去这次拷贝。",
}
EXAMPLES = [
    {"act": functional.silu, "gate": (2, 5, 32), "up": (2, 5, 32)},
    {"act": functional.silu, "x": (2, 5, 32), "dim": -1},
    {"act": functional.silu, "x": (2, 32, 3), "dim": 1},
    {"act": functional.silu, "x": (2, 5, 32), "n": 16, "dim": -1},
    {"act": functional.silu, "x": (2, 5, 32), "n": 16},
]


def pattern(act, gate, up):
    return act(gate) * up


def replacement(gate, up):
    return torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)


def pattern_of_halves(act, x, dim):
    gate, up = x.chunk(2, dim=dim)
    return act(gate) * up


def replacement_of_halves(x, dim):
    return torch_npu.npu_swiglu(x, dim=dim)


def pattern_of_split(act, x, n, dim):
    gate, up = x.split(n, dim=dim)
    return act(gate) * up


def replacement_of_split(x, dim):
    return torch_npu.npu_swiglu(x, dim=dim)


def pattern_of_slices(act, x, n):
    return act(x[..., :n]) * x[..., n:]


def replacement_of_slices(x):
    return torch_npu.npu_swiglu(x, dim=-1)


def pattern_of_swapped_halves(act, x, dim):
    value, gate = x.chunk(2, dim=dim)
    return value * act(gate)


def replacement_of_swapped_halves(x, dim):
    return torch_npu.npu_swiglu(torch.cat(x.chunk(2, dim=dim)[::-1], dim=dim), dim=dim)
