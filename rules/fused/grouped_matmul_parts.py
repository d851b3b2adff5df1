"""Experts that are called one after another, each with the tokens that are its own."""

RULE = "NPU712"
APPLICABILITY = "manual"
OPERATOR = "mindspeed.ops.gmm.npu_gmm_v2"
WORDS = ("expert",)
TRANSPARENT = ("contiguous", "cast")
CONDITIONS = {"expert, tokens": ("expert with its own",)}
CHECK = {
    "en": "Sort the tokens by expert (`torch_npu.npu_moe_token_permute`), put the experts' weights into one tensor, and call it once for each of their products. `torch_npu.npu_grouped_matmul` itself has no backward pass: it is for inference.",
    "zh": "先按专家对 token 排序（`torch_npu.npu_moe_token_permute`），把各专家的权重放入一个张量，再对每个乘积各调用一次。`torch_npu.npu_grouped_matmul` 本身没有反向，只能用于推理。",
}


def pattern(expert, tokens):
    return expert(tokens)
