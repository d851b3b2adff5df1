"""Scaled dot-product attention with a mask of floats, which is not one kernel on the NPU."""

import torch_npu
from torch.nn import functional

RULE = "NPU709"
APPLICABILITY = "manual"
WORDS = ("scaled_dot_product_attention",)
TRANSPARENT = ()
CONDITIONS = {"mask": ("float_mask",)}
CHECK = {
    "en": "Build the mask as booleans, true where a position takes part; leave a bias that is more than a mask.",
    "zh": "请构造布尔掩码，True 表示该位置参与计算；若加的是偏置而不只是掩码，请保持原样。",
}
EXAMPLES = [
    {
        "query": (2, 3, 6, 8),
        "key": (2, 3, 6, 8),
        "value": (2, 3, 6, 8),
        "mask": None,
        "p": 0.0,
        "causal": False,
        "scale": 0.3,
        "grouped": False,
    }
]


def pattern(query, key, value, mask, p, causal, scale, grouped):
    return functional.scaled_dot_product_attention(
        query, key, value, mask, p, causal, scale=scale, enable_gqa=grouped
    )


def replacement(query, key, value, scale):
    return torch_npu.npu_fusion_attention(query, key, value, query.shape[1], "BNSD", scale=scale)[0]
