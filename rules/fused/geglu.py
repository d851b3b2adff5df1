"""GEGLU: one half of a projection, through GELU, gates the other."""

import math

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU704"
APPLICABILITY = "unsafe"
WORDS = ("gelu", "GELU(", "erf(", "tanh(")
BESIDE = ("product",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {"dim": ("number",), "x": ("tensor",)}
CHECK = {
    "en": "Compare the numbers once: which half the operator activates is told by its parameter `activate_left` only, by default the second. Its GELU follows `approximate`, which the native one may not.",
    "zh": "请先比对一次数值：该算子激活哪一半，仅由参数 `activate_left` 说明，默认激活后一半。其 GELU 遵循 `approximate`，而原生 GELU 未必如此。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "dim": -1},
    {"x": (2, 16, 3), "dim": 1},
    {"x": (2, 5, 64), "n": 32, "dim": -1},
    {"x": (2, 3, 32), "n": 16},
]


def pattern(x, dim):
    value, gate = x.chunk(2, dim=dim)
    return value * functional.gelu(gate)


def replacement(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0)[0]


def pattern_tanh(x, dim):
    value, gate = x.chunk(2, dim=dim)
    return value * functional.gelu(gate, approximate="tanh")


def replacement_tanh(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1)[0]


def pattern_first(x, dim):
    gate, value = x.chunk(2, dim=dim)
    return functional.gelu(gate) * value


def replacement_first(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0, activate_left=True)[0]


def pattern_first_tanh(x, dim):
    gate, value = x.chunk(2, dim=dim)
    return functional.gelu(gate, approximate="tanh") * value


def replacement_first_tanh(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1, activate_left=True)[0]


def pattern_of_split(x, n, dim):
    value, gate = x.split(n, dim=dim)
    return value * functional.gelu(gate)


def pattern_first_of_split(x, n, dim):
    gate, value = x.split(n, dim=dim)
    return functional.gelu(gate) * value


def replacement_first_of_split(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0, activate_left=True)[0]


def pattern_of_slices(x, n):
    return x[..., :n] * functional.gelu(x[..., n:])


def replacement_of_slices(x):
    return torch_npu.npu_geglu(x, dim=-1, approximate=0)[0]


def pattern_first_of_slices(x, n):
    return functional.gelu(x[..., :n]) * x[..., n:]


def replacement_first_of_slices(x):
    return torch_npu.npu_geglu(x, dim=-1, approximate=0, activate_left=True)[0]


def pattern_written_out(x, dim):
    value, gate = x.chunk(2, dim=dim)
    return value * (0.5 * gate * (1 + torch.erf(gate / math.sqrt(2))))


def replacement_written_out(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0)[0]


def pattern_first_written_out(x, dim):
    gate, value = x.chunk(2, dim=dim)
    inner = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
    return 0.5 * gate * (1 + torch.tanh(inner)) * value


def replacement_first_written_out(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1, activate_left=True)[0]


def pattern_first_factored(x, dim):
    gate, value = x.chunk(2, dim=dim)
    inner = math.sqrt(2 / math.pi) * gate * (1 + 0.044715 * gate * gate)
    return 0.5 * gate * (1 + torch.tanh(inner)) * value


def replacement_first_factored(x, dim):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1, activate_left=True)[0]
