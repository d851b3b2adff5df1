"""Stochastic depth by hand: whole samples are dropped."""

RULE = "NPU714"
APPLICABILITY = "manual"
OPERATOR = "torch_npu.contrib.module.NpuDropPath"
WORDS = ("bernoulli", "rand(")
BESIDE = ("product or quotient",)
TRANSPARENT = ("contiguous", "cast")
CONDITIONS = {"drawn, x": ("per sample",)}
CHECK = {
    "en": "Make it a module, `NpuDropPath(drop_prob)`, and call `NpuDropPath.enable_droppath_ensemble(model)` once before training: without that nothing is ever dropped. The probability must be a number, not None; shapes must not change between steps.",
    "zh": "请改为模块 `NpuDropPath(drop_prob)`，并在训练前调用一次 `NpuDropPath.enable_droppath_ensemble(model)`：不调用则永远不会丢弃。概率必须是数字，不能是 None；各步的形状不能变化。",
}


def pattern(x, drawn, kept):
    return x * drawn.bernoulli_(kept)


def pattern_scaled(x, drawn, kept, scaled):
    drawn = drawn.bernoulli_(kept)
    if kept > 0.0 and scaled:
        drawn.div_(kept)
    return x * drawn


def pattern_divided(x, drawn, kept):
    return x * drawn.bernoulli_(kept).div_(kept)


def pattern_divided_first(x, drawn, kept):
    return x.div(kept) * drawn.bernoulli_(kept)


def pattern_rounded(x, drawn, kept):
    return x.div(kept) * (kept + drawn).floor()


def pattern_rounded_scaled(x, drawn, kept):
    return x * ((kept + drawn).floor() / kept)


def pattern_below(x, drawn, kept):
    return x.div(kept) * (drawn < kept)


def pattern_above(x, drawn, kept, dropped):
    return x.div(kept) * (drawn > dropped)


def pattern_at_least(x, drawn, kept, dropped):
    return x.div(kept) * (drawn >= dropped)


def pattern_left_out(x, drawn, kept, dropped):
    return x.div(kept) * ~(drawn < dropped)
