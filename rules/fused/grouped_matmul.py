"""A loop over the experts of a mixture: one small product after another."""

import torch
from torch.nn import functional

RULE = "NPU712"
APPLICABILITY = "manual"
OPERATOR = "mindspeed.ops.gmm.npu_gmm_v2"
WORDS = ("expert",)
BESIDE = ("store",)
TRANSPARENT = ("contiguous", "cast", "reshape", "unsqueeze", "squeeze")
CONDITIONS = {"expert, tokens": ("one of many",), "down, source": ("one of many",)}
CHECK = {
    "en": "Sort the tokens by expert (`torch_npu.npu_moe_token_permute`), put the experts' weights into one tensor, and call it once for each of their products. `torch_npu.npu_grouped_matmul` itself has no backward pass: it is for inference.",
    "zh": "先按专家对 token 排序（`torch_npu.npu_moe_token_permute`），把各专家的权重放入一个张量，再对每个乘法各调用一次。`torch_npu.npu_grouped_matmul` 本身没有反向，只能用于推理。",
}


def pattern(out, expert, tokens, index, weight):
    return out.index_add(0, index, expert(tokens) * weight)


def pattern_after(out, expert, tokens, index, weight):
    return out.index_add(0, index, expert(tokens * weight))


def pattern_plain(out, expert, tokens, index):
    return out.index_add(0, index, expert(tokens))


def pattern_stored(out, expert, tokens, index, weight):
    return out[index] + expert(tokens) * weight


def pattern_stacked(out, source, down, index, weight):
    return out.index_add(0, index, functional.linear(source, down) * weight)


def pattern_multiplied(out, source, down, index, weight):
    return out.index_add(0, index, torch.matmul(source, down) * weight)
