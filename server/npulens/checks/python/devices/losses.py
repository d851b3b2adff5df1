"""Losses of `torch.nn` that hold no tensor, so that moving them does nothing."""

import ast

from npulens.checks.arguments import is_spread, keyword_of
from npulens.syntax.meanings import Instance, qualified_names, resolve
from npulens.syntax.scopes import Scope

_NEVER = frozenset(
    f"torch.nn.{name}"
    for name in (
        "L1Loss",
        "MSELoss",
        "SmoothL1Loss",
        "HuberLoss",
        "KLDivLoss",
        "CTCLoss",
        "PoissonNLLLoss",
        "GaussianNLLLoss",
        "HingeEmbeddingLoss",
        "MarginRankingLoss",
        "CosineEmbeddingLoss",
        "TripletMarginLoss",
        "SoftMarginLoss",
        "MultiLabelMarginLoss",
    )
)
_UNLESS_WEIGHTED = frozenset(
    f"torch.nn.{name}"
    for name in (
        "CrossEntropyLoss",
        "NLLLoss",
        "BCELoss",
        "BCEWithLogitsLoss",
        "MultiMarginLoss",
        "MultiLabelSoftMarginLoss",
    )
)
"""Their weights are tensors, which move with them."""


def has_no_tensor(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is a loss without parameters and buffers.

    Source: `torch.nn.modules.loss` registers a buffer for `weight` and `pos_weight` alone.
    """
    if isinstance(node, ast.Call) and not _UNLESS_WEIGHTED.isdisjoint(
        qualified_names(node.func, scope)
    ):
        return not _is_weighted(node)
    values = resolve(node, scope)
    return bool(values) and all(isinstance(v, Instance) and v.name in _NEVER for v in values)


def _is_weighted(call: ast.Call) -> bool:
    return (
        bool(call.args)
        or is_spread(call)
        or any(keyword_of(call, name) is not None for name in ("weight", "pos_weight"))
    )
