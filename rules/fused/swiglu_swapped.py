"""SwiGLU with the gate in the second half, as Diffusers has it: the operator wants it first."""

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("silu", "SiLU(", "swish(", "sigmoid(", "Swish(", "exp(-")
BESIDE = ("product", "silu")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"dim": ("number",)}
CHECK = {
    "en": "Here the second half is the gate, and the operator activates the first, so the halves are swapped by a copy. Swapping the rows of the projection's weight when a checkpoint is loaded saves it.",
    "zh": "此处门控是后一半，而该算子激活的是前一半，因此先用一次拷贝交换两半；若在加载检查点时交换投影权重的行，即可省去这次拷贝。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "dim": -1},
    {"x": (2, 16, 3), "dim": 1},
    {"x": (2, 5, 64), "n": 32, "dim": -1},
    {"x": (2, 3, 32), "n": 16},
]


def pattern(x, dim):
    value, gate = x.chunk(2, dim=dim)
    return value * functional.silu(gate)


def replacement(x, dim):
    return torch_npu.npu_swiglu(torch.cat(x.chunk(2, dim=dim)[::-1], dim=dim), dim=dim)


def pattern_of_split(x, n, dim):
    value, gate = x.split(n, dim=dim)
    return value * functional.silu(gate)


def pattern_of_slices(x, n):
    return x[..., :n] * functional.silu(x[..., n:])


def replacement_of_slices(x):
    return torch_npu.npu_swiglu(torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1), dim=-1)
