"""RMSNorm without a gain: the operator wants one."""

import torch
from torch.nn import functional

RULE = "NPU701"
WORDS = (
    "rsqrt",
    "mean(",
    ").sqrt(",
    "torch.sqrt(",
    "rms_norm(",
    "nn.RMSNorm(",
    "= RMSNorm(",
)
BESIDE = ("root or norm",)
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"x": ("not_centred",), "eps": ("number",)}
ALMOST = {
    "en": "It is RMSNorm, but `torch_npu.npu_rms_norm` needs a gain of the size of the last dimension, and none is multiplied here. Make a tensor of ones once, as a buffer with `persistent=False` so that checkpoints still load, and pass it.",
    "zh": "这是 RMSNorm，但 `torch_npu.npu_rms_norm` 需要一个与最后一维等长的增益，而这里没有乘增益。可以一次性创建全 1 张量（注册为 `persistent=False` 的缓冲区，检查点仍可加载）并传入。",
}


def pattern(x, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def pattern_function(x, shape, eps):
    return functional.rms_norm(x, shape, None, eps)


def pattern_default_epsilon(x, shape):
    return functional.rms_norm(x, shape, None, None)
