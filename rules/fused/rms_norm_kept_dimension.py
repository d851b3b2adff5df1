"""RMSNorm over a dimension that the module keeps, which is the last by default."""

import torch
import torch_npu

RULE = "NPU701"
APPLICABILITY = "unsafe"
WORDS = ("rsqrt", "mean(", ").sqrt(", "torch.sqrt(")
BESIDE = ("product or quotient", "root")
TRANSPARENT = ("cast", "contiguous")
ONE_TYPE = ("x", "weight")
MAY_BE_FLOAT32 = ("weight",)
CONDITIONS = {
    "x": ("not_centred",),
    "weight": ("parameter", "row"),
    "eps": ("number",),
    "dim": ("last by default",),
}
PROVIDED = {
    "replacement": {
        "en": "if the dimension is the last, as it is by default",
        "zh": "仅当归一化的维度为最后一维（默认值）时",
    },
}
CHECK = {
    "en": "The operator normalises the last dimension: nobody may give the module another one. It computes in float32, rounds once and returns the type of its input: in half precision the last digits change.",
    "zh": "该算子对最后一维做归一化：创建该模块时不得指定其他维度。算子内部以 float32 计算，只舍入一次，返回值与输入的数据类型一致：半精度下末位会有差异。",
}
EXAMPLES = [
    {"x": (2, 5, 64), "weight": (64,), "eps": 1e-6, "dim": -1},
    {"x": (3, 64), "weight": (64,), "eps": 1e-5, "dim": -1},
]


def pattern(x, weight, eps, dim):
    return weight * (x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + eps))


def replacement(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
