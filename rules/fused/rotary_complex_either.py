"""Neighbours or halves of a head, as a flag says, taken as complex numbers and turned."""

import torch

RULE = "NPU706"
APPLICABILITY = "manual"
OPERATOR = "torch_npu.npu_rotary_mul"
WORDS = ("view_as_complex", "torch.complex(")
BESIDE = ("product",)
TRANSPARENT = ("cast", "contiguous")
CONDITIONS = {"x": ("heads",)}
CHECK = {
    "en": 'One call does it, for neighbours with `rotary_mode="interleave"` and tables `turns.real.repeat_interleave(2, -1)` and `turns.imag.repeat_interleave(2, -1)`, for halves with "half" and each table twice, one behind the other. Tables have the type of the tensor and as many dimensions; make them once for all layers.',
    "zh": '可由一次调用完成：旋转相邻元素时用 `rotary_mode="interleave"`，两张表为 `turns.real.repeat_interleave(2, -1)` 和 `turns.imag.repeat_interleave(2, -1)`；旋转前后两半时用 "half"，每张表前后拼接两次。表须与输入同类型、同维数，所有层共用，只需生成一次。',
}


def pattern(x, turns, interleaved, shape):
    if not interleaved:
        x = x.view(*shape[:-1], 2, -1).transpose(-1, -2).contiguous()
    y = torch.view_as_real(torch.view_as_complex(x.view(*shape[:-1], -1, 2)) * turns).flatten(3)
    if not interleaved:
        y = torch.cat([y[..., 0::2], y[..., 1::2]], dim=-1)
    return y
