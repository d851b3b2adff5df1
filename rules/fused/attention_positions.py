"""Attention whose scores are a sum of two products, one of them with positions."""

import torch

RULE = "NPU707"
WORDS = ("softmax", "Softmax")
BESIDE = ("matrix product",)
TRANSPARENT = ("cast", "contiguous", "transpose", "permute")
CONDITIONS = {"weights": ("attends", "adds_a_product"), "v": ("tensor",)}
ALMOST = {
    "en": "It is attention with relative positions: scores are a sum of two products. `torch_npu.npu_fusion_attention` computes one of them, with softmax, dropout and the values, and takes the other as `pse`: compute it first, with the sizes of the scores and the type of the query, and give the scale as `scale`, which multiplies the sum. Masks are boolean, true where left out. Compare results and gradients once.",
    "zh": "这是带相对位置的注意力：分数是两个乘积之和。`torch_npu.npu_fusion_attention` 可完成其中一个乘积以及 softmax、dropout 和与 value 相乘，另一个乘积可先算好作为 `pse` 传入（形状与分数一致，类型与 query 相同），缩放系数用 `scale` 传入，它乘在两者之和上。掩码为布尔型，True 表示屏蔽。请比对一次结果和梯度。",
}


def pattern(weights, v):
    return weights @ v


def pattern_shared(weights, v):
    return torch.einsum("bnhm,bmv->bnhv", weights, v)


def pattern_sums(recipe, weights, v):
    return torch.einsum(recipe, weights, v)
