"""A gated unit whose activation is configured, and GELU by what the code shows of it."""

from functools import partial

import torch
import torch_npu
from torch.nn import functional

RULE = "NPU704"
APPLICABILITY = "unsafe"
WORDS = (
    "act(",
    "act_fn(",
    "act_func(",
    "activation(",
    "activation_fn(",
    "activation_func(",
    "activation_function(",
)
BESIDE = ("product",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {
    "act, gate": ("gelu",),
    "gate, up": ("alike",),
    "dim": ("number",),
}
CHECK = {
    "en": "The configured activation must be the GELU that the fix names, exact or with tanh. Two tensors of the same shape and type are joined by a copy, which costs memory and time: merge the two projections where you can, and measure. Compare the numbers once: which half is activated is told by the parameter `activate_left` only.",
    "zh": "配置的激活函数必须是修改标题所述的 GELU（精确或 tanh 近似）。两个形状、数据类型相同的张量需先拼接，有显存与时间开销：请尽可能合并两个投影，并实测。激活哪一半仅由参数 `activate_left` 说明，请先比对一次数值。",
}
PROVIDED = {
    "replacement": {
        "en": "if the configured activation is the exact GELU",
        "zh": "仅当配置的激活函数为精确 GELU 时",
    },
    "tanh": {
        "en": "if the configured activation is GELU with tanh",
        "zh": "仅当配置的激活函数为 tanh 近似的 GELU 时",
    },
}
FORMS = {"chunked": ("chunked", "divided", "sliced")}
EXAMPLES = [
    {"act": functional.gelu, "gate": (2, 5, 32), "up": (2, 5, 32)},
    {"act": functional.gelu, "x": (2, 5, 32), "n": 16, "dim": -1},
    {"act": functional.gelu, "x": (2, 32, 32), "n": 16, "dim": 1},
]
EXAMPLES_TANH = [
    {"act": partial(functional.gelu, approximate="tanh"), "gate": (2, 5, 32), "up": (2, 5, 32)},
    {"act": partial(functional.gelu, approximate="tanh"), "x": (2, 5, 32), "n": 16, "dim": -1},
    {"act": partial(functional.gelu, approximate="tanh"), "x": (2, 32, 32), "n": 16, "dim": 1},
]


def chunked(x, n, dim):
    return x.chunk(2, dim=dim)


def divided(x, n, dim):
    return x.split(n, dim=dim)


def sliced(x, n, dim):
    return x[..., :n], x[..., n:]


def pattern(act, gate, up):
    return act(gate) * up


def replacement(gate, up):
    return torch_npu.npu_geglu(torch.cat((up, gate), dim=-1), dim=-1, approximate=0)[0]


def tanh(gate, up):
    return torch_npu.npu_geglu(torch.cat((up, gate), dim=-1), dim=-1, approximate=1)[0]


def pattern_of_halves(act, x, n, dim):
    gate, up = chunked(x, n, dim)
    return act(gate) * up


def replacement_of_halves(x, dim=-1):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0, activate_left=True)[0]


def tanh_of_halves(x, dim=-1):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1, activate_left=True)[0]


def pattern_of_swapped_halves(act, x, n, dim):
    up, gate = chunked(x, n, dim)
    return act(gate) * up


def replacement_of_swapped_halves(x, dim=-1):
    return torch_npu.npu_geglu(x, dim=dim, approximate=0)[0]


def tanh_of_swapped_halves(x, dim=-1):
    return torch_npu.npu_geglu(x, dim=dim, approximate=1)[0]
