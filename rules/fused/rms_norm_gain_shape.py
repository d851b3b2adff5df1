"""RMSNorm with a gain of another shape than the last dimension."""

import torch

RULE = "NPU701"
WORDS = ("rsqrt", "mean(", ").sqrt(", "torch.sqrt(")
BESIDE = ("product or quotient", "root")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"x": ("not_centred",), "weight": ("parameter", "not_row"), "eps": ("number",)}
ALMOST = {
    "en": "It is RMSNorm with a gain of another shape: `torch_npu.npu_rms_norm` needs one value for each element of the last dimension. Keep the parameter, so that checkpoints load, and pass it expanded to that size if it is one number for all.",
    "zh": "这是 RMSNorm，但增益的形状不同：`torch_npu.npu_rms_norm` 要求最后一维的每个元素各有一个值。请保留该参数，使检查点仍可加载；若它是所有元素共用的一个数，可扩展到该长度后传入。",
}


def pattern(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))
