"""The order of mixed precision in training loops: what is scaled, clipped, and needs no scale.

A step of training is looked at as a whole when its function, or its loop in the module, is entered.
"""

import ast
from collections.abc import Sequence

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, Severity
from npulens.checks.arguments import is_spread, keyword_of
from npulens.checks.context import Context
from npulens.checks.python.mixed_precision.early_clipping import SCALERS, EarlyClip, early_clips
from npulens.checks.python.mixed_precision.unscaled_casts import unscaled_casts
from npulens.checks.titles import add
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import ModuleScope, Scope, inner_scope
from npulens.text.spans import Span

_POSITIONS = 4
"""So many arguments of a scaler by position are about the scale; the next may switch it off."""
_CLIPPED = ("clip_grad_", ".scale(", ".step(")
_CAST = ("autocast", ".backward(", ".step(")
"""Words of which a function must have all."""


def entered(node: Function | ast.For | ast.While, scope: Scope, context: Context) -> None:
    """A function, or a loop of the module: what is in a wrong order in it is noted."""
    clips = context.lookups.contains(_CLIPPED[0])
    casts = context.facts.signs.evidence.casts_without_scaler and context.lookups.contains(_CAST[0])
    if not clips and not casts:
        return
    if isinstance(node, Function):
        scope = inner_scope(node, scope)
    elif not isinstance(scope, ModuleScope):
        return  # its function was looked at
    notes = context.notes.scaling
    if clips and all(context.lookups.contains_within(word, node) for word in _CLIPPED):
        for call, clip in early_clips(node, scope).items():
            notes.setdefault(call, _unscaled_first(clip, context))
    if casts and all(context.lookups.contains_within(word, node) for word in _CAST):
        notes.update(dict.fromkeys(unscaled_casts(node, scope)))


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """A call that was noted, or `GradScaler()` beside bfloat16 alone."""
    if node in context.notes.scaling:
        fixes = context.notes.scaling[node]
        if fixes is None:
            _report(node, message("check.half-without-scaler"), context, Severity.INFO)
        else:
            _report(node, message("check.clipped-while-scaled"), context, None, fixes)
    elif context.facts.signs.evidence.casts_to_bfloat16 and _makes_scaler(node, scope):
        _report(node, message("check.bfloat16-without-scale"), context, Severity.HINT)


def _makes_scaler(node: ast.Call, scope: Scope) -> bool:
    """`GradScaler(init_scale=1024)`, which nothing switches off."""
    enabled = keyword_of(node, "enabled")
    is_on = enabled is None or getattr(enabled.value, "value", None) is True
    if not is_on or is_spread(node) or len(node.args) > _POSITIONS:
        return False
    return not SCALERS.isdisjoint(qualified_names(node.func, scope))


def _unscaled_first(clip: EarlyClip, context: Context) -> tuple[Fix, ...]:
    """`scaler.unscale_(optimizer)` on a line of its own before the clipping."""
    if clip.unscaling is None or not isinstance(clip.statement, ast.stmt):
        return ()
    indentation = context.before_on_line(clip.statement)
    if indentation.strip():
        return ()
    start = context.span(clip.statement).start
    edit = Edit(Span(start, start), f"{clip.unscaling}\n{indentation}")
    return (Fix(add(clip.unscaling), Applicability.UNSAFE, (edit,)),)


def _report(
    node: ast.Call,
    note: LocalizedText,
    context: Context,
    severity: Severity | None,
    fixes: Sequence[Fix] = (),
) -> None:
    rule = context.catalogue.required("scaler-order")
    symbol = context.source(node.func)
    context.report(rule, context.span(node), symbol, [*fixes], note=note, severity=severity)
