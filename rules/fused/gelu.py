"""GELU and its approximations, written out."""

import math

import torch
import torch_npu

RULE = "NPU705"
APPLICABILITY = "unsafe"
WORDS = ("erf(", "0.044715", "0.04471", "1.702", "quick_gelu")
TRANSPARENT = ("contiguous",)
CONDITIONS = {"x": ("tensor",)}
CHECK = {
    "en": "Written out, GELU rounds after each step and the operator once: in half precision the last digits change. `torch.nn.functional.gelu` is no replacement for a certain formula, for on the NPU it may not follow `approximate`.",
    "zh": "逐步写出的 GELU 每一步都会舍入，该算子只舍入一次：半精度下末位会有差异。若需要特定的公式，请勿改用 `torch.nn.functional.gelu`：它在 NPU 上可能不遵循 `approximate`。",
}
EXAMPLES = [{"x": (2, 5, 64)}, {"x": (3, 7)}]


def pattern_quick(x):
    return x * torch.sigmoid(1.702 * x)


def replacement_quick(x):
    return torch_npu.npu_fast_gelu(x)


def pattern_exact(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def replacement_exact(x):
    return torch_npu.npu_gelu(x, approximate="none")


def pattern_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def replacement_tanh(x):
    return torch_npu.npu_gelu(x, approximate="tanh")


def pattern_factored(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x**2)))


def replacement_factored(x):
    return torch_npu.npu_gelu(x, approximate="tanh")


def pattern_logistic(x):
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def replacement_logistic(x):
    return torch_npu.npu_gelu(x, approximate="tanh")


def pattern_of_ones(x):
    error = torch.erf(x / math.sqrt(2)).to(dtype=x.dtype)
    return x * 0.5 * (error + torch.ones_like(x).to(dtype=x.dtype))


def replacement_of_ones(x):
    return torch_npu.npu_gelu(x, approximate="none")
