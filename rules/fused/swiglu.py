"""SwiGLU: the first half of a projection, through SiLU, gates the second."""

import torch_npu
from torch.nn import functional

RULE = "NPU703"
APPLICABILITY = "unsafe"
WORDS = ("silu", "SiLU(", "swish(", "sigmoid(", "Swish(", "exp(-")
BESIDE = ("product", "silu")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"dim": ("number",)}
CHECK = {
    "en": "The input must be contiguous and not empty; in half precision the last digits change.",
    "zh": "输入须连续且非空；半精度下末位会有差异。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "dim": -1},
    {"x": (2, 16, 3), "dim": 1},
    {"x": (3, 16), "dim": -1},
    {"x": (2, 3, 32), "n": 16},
    {"x": (4, 32), "width": 16},
    {"x": (2, 5, 64), "n": 32, "dim": -1},
]


def pattern(x, dim):
    gate, up = x.chunk(2, dim=dim)
    return functional.silu(gate) * up


def replacement(x, dim):
    return torch_npu.npu_swiglu(x, dim=dim)


def pattern_of_split(x, n, dim):
    gate, up = x.split(n, dim=dim)
    return functional.silu(gate) * up


def replacement_of_split(x, dim):
    return torch_npu.npu_swiglu(x, dim=dim)


# A product of two parts has parts of one size: where one ends and the other starts is the middle.


def pattern_of_slices(x, n):
    return functional.silu(x[..., :n]) * x[..., n:]


def replacement_of_slices(x):
    return torch_npu.npu_swiglu(x, dim=-1)


def pattern_of_columns(x, width):
    return functional.silu(x[:, :width]) * x[:, width:]


def replacement_of_columns(x):
    return torch_npu.npu_swiglu(x, dim=1)
