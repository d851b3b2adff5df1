"""Training steps that compute in float16 by autocast where nothing scales the loss.

Source: torch 2.13: torch/amp/autocast_mode.py, docs/source/amp.rst "Gradient Scaling".
"""

import ast
from collections.abc import Iterator, Sequence

from npulens.checks.arguments import argument_of, is_spread
from npulens.syntax.bindings import target_names
from npulens.syntax.meanings import Literal, qualified_names, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.statement_order import Step, may_follow, steps
from npulens.syntax.values import last_name
from npulens.syntax.walking import names_in, nodes_below

_OF_ONE_DEVICE = frozenset(
    f"torch.{device}.amp.{module}autocast"
    for device in ("cuda", "npu")
    for module in ("", "autocast_mode.")
)
"""They take `enabled` first, and compute in float16 unless told otherwise."""
_OF_ANY_DEVICE = frozenset({"torch.autocast", "torch.amp.autocast"})
_HALF = frozenset({"torch.float16", "torch.half"})
_WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_Entering = (ast.With, ast.AsyncWith)


def unscaled_casts(owner: ast.AST, scope: Scope) -> Iterator[ast.Call]:
    """The calls of `autocast` in a function or a loop around what its training step computes.

    Args:
        owner: The function or loop, in a module where nothing scales a loss.
        scope: The scope that its statements are in.
    """
    ordered = list(steps(owner))
    for at, step in enumerate(ordered):
        node = step.node
        if isinstance(node, ast.Call) and _is_entered(step) and _casts_to_half(node, scope):
            later = [each for each in ordered[at + 1 :] if may_follow(step, each)]
            if _is_trained_on(step, later):
                yield node


def _is_entered(step: Step) -> bool:
    """Whether a call is what a `with` enters, and gradients are computed there."""
    if not isinstance(step.statement, _Entering) or _has_no_gradients(step):
        return False
    return any(item.context_expr is step.node for item in step.statement.items)


def _has_no_gradients(step: Step) -> bool:
    around = [step.statement, *(turn.owner for turn in step.way)]
    return any(
        isinstance(item.context_expr, ast.Call)
        and last_name(item.context_expr.func) in _WITHOUT_GRADIENTS
        for statement in around
        if isinstance(statement, _Entering)
        for item in statement.items
    )


def _casts_to_half(node: ast.Call, scope: Scope) -> bool:
    """Whether a call is autocast to float16, which may be switched but is not switched off."""
    if last_name(node.func) == "" or is_spread(node):
        return False
    names = qualified_names(node.func, scope)
    if len(names) != 1 or names[0] not in _OF_ONE_DEVICE | _OF_ANY_DEVICE:
        return False
    is_for_one = names[0] in _OF_ONE_DEVICE
    enabled = argument_of(node, "enabled", 0 if is_for_one else 2)
    if isinstance(enabled, ast.Constant) and not enabled.value:
        return False
    dtype = argument_of(node, "dtype", 1)
    if dtype is None:
        return is_for_one or _is_for_cuda(argument_of(node, "device_type", 0), scope)
    found = qualified_names(dtype, scope)
    return bool(found) and _HALF.issuperset(found) and len(found) == len(resolve(dtype, scope))


def _is_for_cuda(device: ast.expr | None, scope: Scope) -> bool:
    return device is not None and resolve(device, scope) == [Literal("cuda", True)]


def _is_trained_on(cast: Step, later: Sequence[Step]) -> bool:
    """Whether a backward pass of what a cast is around follows, and a step of an optimizer."""
    made: set[str] = set()
    depth = len(cast.way)
    is_back = False
    for step in later:
        node = step.node
        is_inside = step.way[:depth] == cast.way and len(step.way) > depth
        if isinstance(node, ast.Assign):
            is_cast = is_inside or not made.isdisjoint(names_in(node.value))
            names = {name for target in node.targets for name in target_names(target)}
            made = made | names if is_cast and not _has_no_gradients(step) else made - names
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            loss = node.func.value
            is_loss = (is_inside and _is_computed(loss)) or not made.isdisjoint(names_in(loss))
            is_back = is_back or (node.func.attr == "backward" and is_loss)
            if is_back and node.func.attr == "step":
                return True
    return False


def _is_computed(node: ast.expr) -> bool:
    """Whether an expression is computed where it stands, as `model(x).sum()` is."""
    return any(isinstance(part, ast.Call) for part in nodes_below(node))
