"""Attention between whose scores and softmax something is done that no operator does."""

import torch

RULE = "NPU707"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous", "transpose", "permute")
CONDITIONS = {"weights": ("attends",)}
ALMOST = {
    "en": "It is attention, but not just that of `torch_npu.npu_fusion_attention`, which computes `softmax(scale * (q @ k^T + pse))` with a boolean mask, dropout, and the product with the values. Here scores take another way to softmax: something is added to them, or they are limited, sorted or filled otherwise. A mask can be passed on as booleans, true where left out, and a bias as `pse`, divided by the scale, with the sizes of the scores and the type of the query. The rest has no counterpart.",
    "zh": "这是注意力，但与 `torch_npu.npu_fusion_attention` 不完全相同：该算子计算 `softmax(scale * (q @ k^T + pse))`，支持布尔掩码、dropout 以及与 value 相乘。这里分数在 softmax 之前另有处理：加上了其他张量，或经过截断、重排或其他方式的填充。掩码可改为布尔型传入（True 表示屏蔽）；偏置可作为 `pse` 传入，须先除以 scale，形状与分数一致，类型与 query 相同。其余处理没有对应参数。",
}


def pattern(weights, v):
    return weights @ v


def pattern_shared(weights, v):
    return torch.einsum("bnhm,bmv->bnhv", weights, v)


def pattern_sums(recipe, weights, v):
    return torch.einsum(recipe, weights, v)
