"""RMSNorm without an epsilon."""

import torch

RULE = "NPU701"
WORDS = (
    "rsqrt",
    "mean(",
    "torch.norm(",
    "linalg.norm(",
    "vector_norm(",
    ".norm(2",
    ".norm(p=2",
    ".norm(dim",
    "F.normalize(",
    "functional.normalize(",
)
BESIDE = ("product or quotient", "root")
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"x": ("not_centred",), "weight": ("parameter",)}
ALMOST = {
    "en": "It is RMSNorm without an epsilon, which gives NaN for a row of zeros. `torch_npu.npu_rms_norm` takes a small `epsilon` such as 1e-6, which changes the last digits; add one if that is acceptable.",
    "zh": "这是没有 epsilon 的 RMSNorm，全零的行会得到 NaN。`torch_npu.npu_rms_norm` 需要一个很小的 `epsilon`（如 1e-6），会改变末位数字；可以接受时再添加。",
}


def pattern(x, weight):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True)) * weight
