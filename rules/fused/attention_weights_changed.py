"""Attention whose weights are changed between softmax and the values."""

import torch

RULE = "NPU707"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous", "transpose", "permute")
CONDITIONS = {"weights": ("changes_weights",), "v": ("tensor", "tensor")}
ALMOST = {
    "en": "Attention would be one kernel (`torch_npu.npu_fusion_attention`), but its weights are changed between softmax and the product with the values, by a mask of heads, a second mask, a projection, or come from something else in some cases. The operator does none of these. Where what changes them is optional, use the operator in a branch of its own for the case without; a second mask after softmax only matters for rows that are masked as a whole.",
    "zh": "注意力本可由一个算子（`torch_npu.npu_fusion_attention`）完成，但其权重在 softmax 与乘 value 之间又被修改（按 head 的掩码、第二次掩码或投影），或在某些情况下并非来自 softmax，该算子都不支持。若该修改是可选的，请在不需要它时走单独的分支并使用该算子；softmax 之后的第二次掩码只影响整行被屏蔽的行。",
}


def pattern(weights, v):
    return weights @ v


def pattern_shared(weights, v):
    return torch.einsum("bnhm,bmv->bnhv", weights, v)


def pattern_sums(recipe, weights, v):
    return torch.einsum(recipe, weights, v)
