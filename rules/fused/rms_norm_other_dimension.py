"""RMSNorm over another dimension than the last."""

import torch
from torch.nn import functional

RULE = "NPU701"
WORDS = ("rsqrt", "mean(", ").sqrt(", "torch.sqrt(", "F.normalize(", "functional.normalize(")
BESIDE = ("product or quotient", "root", "gain")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {
    "x": ("not_centred",),
    "eps": ("number",),
    "dim": ("not_last",),
    "scale": ("number",),
    "weight": ("parameter",),
    "weight, width": ("made of",),
}
ALMOST = {
    "en": "It is RMSNorm over another dimension: `torch_npu.npu_rms_norm` normalises the last ones. If this is the last, write -1; otherwise moving it there and back costs two copies, so keep channels last in the layers around it or leave this as it is.",
    "zh": "这是在其他维度上的 RMSNorm：`torch_npu.npu_rms_norm` 只对最后若干维做归一化。如果这就是最后一维，请写作 -1；否则来回转置需要两次拷贝，可让相邻各层都把通道放在最后一维，或保持现状。",
}


def pattern(x, eps, dim):
    return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + eps)


def pattern_length(x, scale, weight, least, dim):
    return functional.normalize(x, dim=dim, eps=least) * scale * weight


def pattern_width(x, width, weight, eps, dim):
    return x * torch.rsqrt(x.pow(2).sum(dim, keepdim=True) / width + eps) * weight
