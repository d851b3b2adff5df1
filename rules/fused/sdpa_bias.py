"""Scaled dot-product attention with a bias that the model learns, such as relative positions."""

import torch_npu
from torch.nn import functional

RULE = "NPU709"
APPLICABILITY = "manual"
WORDS = ("scaled_dot_product_attention",)
TRANSPARENT = ()
CONDITIONS = {"bias": ("learned_bias",)}
CHECK = {
    "en": "`torch_npu.npu_fusion_attention` takes the bias as `pse`, in the sizes of the scores and the type of the query: it computes `softmax(scale * (q @ k^T + pse))`, so divide the bias by the scale first. Compare results and gradients once.",
    "zh": "`torch_npu.npu_fusion_attention` 可通过 `pse` 接收该偏置（形状与分数一致，类型与 query 相同）：它计算 `softmax(scale * (q @ k^T + pse))`，因此须先把偏置除以 scale。请比对一次结果和梯度。",
}
EXAMPLES = [
    {
        "query": (2, 3, 6, 8),
        "key": (2, 3, 6, 8),
        "value": (2, 3, 6, 8),
        "bias": None,
        "p": 0.0,
        "causal": False,
        "scale": 0.3,
        "grouped": False,
    }
]


def pattern(query, key, value, bias, p, causal, scale, grouped):
    return functional.scaled_dot_product_attention(
        query, key, value, bias, p, causal, scale=scale, enable_gqa=grouped
    )


def replacement(query, key, value, scale):
    return torch_npu.npu_fusion_attention(query, key, value, query.shape[1], "BNSD", scale=scale)[0]
