"""Stochastic depth by hand: whole samples are dropped."""

import torch

RULE = "NPU714"
APPLICABILITY = "manual"
OPERATOR = "torch_npu.contrib.module.NpuDropPath"
WORDS = ("bernoulli", ".rand(")
BESIDE = ("draw",)
TRANSPARENT = ("contiguous", "cast")
CONDITIONS = {}
CHECK = {
    "en": "Make it a module, `NpuDropPath(drop_prob)`, and call `NpuDropPath.enable_droppath_ensemble(model)` once before training: without that nothing is ever dropped. The probability must be a number, not None; shapes must not change between steps.",
    "zh": "请改为模块 `NpuDropPath(drop_prob)`，并在训练前调用一次 `NpuDropPath.enable_droppath_ensemble(model)`：不调用则永远不会丢弃。概率必须是数字，不能是 None；各步的形状不能变化。",
}


def pattern(x, kept):
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    return x * x.new_empty(shape).bernoulli_(kept)


def pattern_scaled(x, kept, scaled):
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    drawn = x.new_empty(shape).bernoulli_(kept)
    if kept > 0.0 and scaled:
        drawn.div_(kept)
    return x * drawn


def pattern_rounded(x, kept):
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    drawn = kept + torch.rand(shape, dtype=x.dtype, device=x.device)
    return x.div(kept) * drawn.floor()
