"""`ShardedGradScaler()` of FSDP, which scales for CUDA unless it is given another device.

Without CUDA it switches itself off and warns, so that float16 is trained without scaling.
Source: torch 2.13: torch/distributed/fsdp/sharded_grad_scaler.py, torch/amp/grad_scaler.py.
"""

import ast

from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.checks.arguments import is_spread, keyword_of
from npulens.checks.context import Context
from npulens.checks.shared_rules import GRAD_SCALER
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

NAME = "ShardedGradScaler"
_QUALIFIED = f"torch.distributed.fsdp.sharded_grad_scaler.{NAME}"
_DEVICE = 'device="npu"'


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """A call without a device; one with `"cuda"` is found by that word."""
    if not context.lookups.contains(NAME) or _QUALIFIED not in qualified_names(node.func, scope):
        return
    if node.args or keyword_of(node, "device") is not None or is_spread(node):
        return
    opened = context.span(node.func).end + 1
    if context.code.text[opened - 1 : opened] != "(":
        return
    edit = Edit(Span(opened, opened), f"{_DEVICE}, " if node.keywords else _DEVICE)
    context.report(
        context.catalogue.required(GRAD_SCALER),
        context.span(node.func),
        context.source(node.func),
        [Fix(use(f"{NAME}({_DEVICE})"), Applicability.SAFE, (edit,))],
        replacement=f"{NAME}({_DEVICE})",
        severity=Severity.WARNING,
    )
