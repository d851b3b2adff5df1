"""GEGLU of two tensors, as two projections give them."""

import math

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU704"
APPLICABILITY = "unsafe"
WORDS = ("gelu", "GELU(", "erf(", "tanh(")
BESIDE = ("product",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {"gate, up": ("alike",)}
CHECK = {
    "en": "The operator wants both tensors in one, and joining them costs memory and time, unless one projection gives both: merge the two projections where you can, and measure. Both must have the same shape, nothing broadcast, and the same type. Which half is activated is told by the parameter `activate_left` only, by default the second: compare the numbers once.",
    "zh": "该算子要求两个张量合为一个，拼接有显存与时间开销，除非由一个投影同时给出：请尽可能合并两个投影，并实测。两者形状须相同（不能依赖广播），数据类型须一致。激活哪一半仅由参数 `activate_left` 说明，默认后一半：请先比对一次数值。",
}
FORMS = {
    "native": ("native", "written_out"),
    "native_tanh": ("native_tanh", "written_out_tanh", "factored_tanh"),
}
EXAMPLES = [
    {"gate": (2, 5, 32), "up": (2, 5, 32)},
    {"gate": (3, 8), "up": (3, 8)},
]


def native(x):
    return functional.gelu(x)


def written_out(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def native_tanh(x):
    return functional.gelu(x, approximate="tanh")


def written_out_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def factored_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))


def pattern(gate, up):
    return native(gate) * up


def replacement(gate, up):
    return torch_npu.npu_geglu(torch.cat((up, gate), dim=-1), dim=-1, approximate=0)[0]


def pattern_tanh(gate, up):
    return native_tanh(gate) * up


def replacement_tanh(gate, up):
    return torch_npu.npu_geglu(torch.cat((up, gate), dim=-1), dim=-1, approximate=1)[0]
