"""Scaled dot-product attention of three dimensions: batch and heads are one of them."""

from torch.nn import functional

RULE = "NPU709"
WORDS = ("scaled_dot_product_attention",)
TRANSPARENT = ("contiguous",)
CONDITIONS = {"query": ("three_dimensions",)}
ALMOST = {
    "en": "On the NPU `scaled_dot_product_attention` is one kernel for tensors of four dimensions; with three it takes the way of separate operators. Keep batch and heads apart, or give each of them, and a mask, `unsqueeze(1)` and take the result's dimension away with `squeeze(1)`.",
    "zh": "在 NPU 上，`scaled_dot_product_attention` 只有输入为四维时才由一个算子完成；三维时会走逐算子的路径。请将批和 head 分为两维，或对各输入及掩码做 `unsqueeze(1)`，再用 `squeeze(1)` 去掉结果中的这一维。",
}


def pattern(query, key, value, mask, p, causal, scale, grouped):
    return functional.scaled_dot_product_attention(
        query, key, value, mask, p, causal, scale=scale, enable_gqa=grouped
    )
