"""RMSNorm with its epsilon added to the root, not under it."""

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
CONDITIONS = {"x": ("not_centred",), "eps": ("number",), "width": ("number",)}
ALMOST = {
    "en": "It is almost RMSNorm: `eps` is added to the root, while `torch_npu.npu_rms_norm` adds it to the mean square, under the root. The results are close if `eps` is small against the activations; with a model trained this way, compare before you change it.",
    "zh": "这几乎就是 RMSNorm：这里 `eps` 加在开方之后，而 `torch_npu.npu_rms_norm` 把它加在根号内的均方上。当 `eps` 远小于激活值时结果接近；模型若已按此方式训练，请先比较结果再修改。",
}


def pattern(x, eps):
    return x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + eps)


def pattern_norm(x, eps, width):
    return x / (x.norm(2, dim=-1, keepdim=True) * width + eps)


def pattern_norm_divided(x, eps, width):
    return x / (x.norm(2, dim=-1, keepdim=True) / width + eps)
