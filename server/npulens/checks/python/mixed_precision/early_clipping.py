"""Gradients that are clipped while they are still multiplied by the scale of a gradient scaler.

Looked for is the order of a plain training step: `scaler.scale(loss).backward()`, then the
clipping, then `scaler.step(optimizer)`. Whatever between them may take the scale away keeps the
clipping from being found.
Source: torch 2.13: torch/amp/grad_scaler.py, docs/source/notes/amp_examples.rst.
"""

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from npulens.checks.arguments import argument_of
from npulens.syntax.meanings import ANYTHING, Instance, qualified_names, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.statement_order import Step, Way, may_follow, meeting, steps
from npulens.syntax.values import dotted_name, last_name
from npulens.syntax.walking import nodes_below

SCALERS = frozenset(
    {"torch.GradScaler", "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler"}
    | {f"torch.{owner}amp.GradScaler" for owner in ("", "cuda.", "npu.")}
    | {f"torch.{owner}amp.grad_scaler.GradScaler" for owner in ("", "cuda.", "npu.")}
)
_CLIPPING = frozenset(
    f"torch.nn.utils.{module}clip_grad_{name}"
    for module in ("", "clip_grad.")
    for name in ("norm_", "norm", "value_")
)
_PRECISION = re.compile(r"amp|scaler|fp16|half|mixed|prec|16", re.IGNORECASE)
"""In a test it may say that no scaler is in use."""
_UNSCALING = re.compile(r"unscale|get_scale|_scale\Z")
_OTHER_LIMIT = re.compile(r"\binf|scale")
"""A limit with which the norm is only measured, or one that is multiplied by the scale, too."""
_IN_PLACE = frozenset({"mul_", "div_", "copy_"})
_MOST = 20
"""Of clippings in one function, so that time stays in proportion to its length."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


class EarlyClip(NamedTuple):
    """A call that clips scaled gradients.

    Attributes:
        statement: The statement of the call.
        unscaling: What has to run before the statement, `None` where that is not certain.
    """

    statement: ast.AST
    unscaling: str | None


class _TrainingStep(NamedTuple):
    """The calls around the clipping, and the text of the scaler."""

    scaler: str
    backward: Step
    clip: Step
    step: Step


def early_clips(owner: ast.AST, scope: Scope) -> dict[ast.AST, EarlyClip]:
    """The calls in a function or a loop that clip gradients before these are unscaled.

    Args:
        owner: The function or loop.
        scope: The scope that its statements are in.
    """
    ordered = list(steps(owner))
    clips = [step for step in ordered if _clips(step, scope)][:_MOST]
    found = (_training_step(clip, ordered, scope) for clip in clips)
    return {
        each.clip.node: EarlyClip(each.clip.statement, _unscaling(each, clips, ordered))
        for each in found
        if each is not None
    }


def _clips(step: Step, scope: Scope) -> bool:
    if not isinstance(step.node, ast.Call) or "clip_grad_" not in last_name(step.node.func):
        return False
    limit = argument_of(step.node, "max_norm", 1)
    if limit is not None and _OTHER_LIMIT.search(ast.unparse(limit)) is not None:
        return False
    return not _CLIPPING.isdisjoint(qualified_names(step.node.func, scope))


def _training_step(clip: Step, ordered: Sequence[Step], scope: Scope) -> _TrainingStep | None:
    """What is around the clipping, if the gradients are scaled there."""
    at = ordered.index(clip)
    before = [step for step in ordered[:at] if _is_method(step, "backward")]
    backward = next((step for step in reversed(before) if may_follow(step, clip)), None)
    if backward is None:
        return None
    others = before[: before.index(backward)]
    arms = [backward, *(step for step in reversed(others) if not may_follow(step, backward))]
    found = (_around(arm, clip, ordered, scope) for arm in arms if may_follow(arm, clip))
    return next((each for each in found if each is not None), None)


def _around(
    backward: Step, clip: Step, ordered: Sequence[Step], scope: Scope
) -> _TrainingStep | None:
    scaler = _scaler_of(backward, ordered)
    if scaler is None:
        return None
    at = ordered.index(clip)
    name = ast.unparse(scaler)
    between = ordered[ordered.index(backward) + 1 : at + 1]
    after = (step for step in ordered[at + 1 :] if _is_method(step, "step", name))
    step = next((s for s in after if may_follow(clip, s) and may_follow(backward, s)), None)
    if (
        step is None
        or any(_may_unscale(each, name) for each in between)
        or not _is_scaler(scaler, ordered, scope)
        or _may_be_without_scaler(backward, clip, step)
    ):
        return None
    return _TrainingStep(name, backward, clip, step)


def _is_method(step: Step, method: str, owner: str | None = None) -> bool:
    """Whether a step calls a method, of what has this text if one is given."""
    callee = getattr(step.node, "func", None)
    if not isinstance(callee, ast.Attribute) or callee.attr != method:
        return False
    return owner is None or ast.unparse(callee.value) == owner


def _scaler_of(backward: Step, ordered: Sequence[Step]) -> ast.expr | None:
    """`scaler` of `scaler.scale(loss).backward()`, also where the product has a name."""
    callee = getattr(backward.node, "func", None)
    loss = callee.value if isinstance(callee, ast.Attribute) else None
    if isinstance(loss, ast.Name):
        name = loss.id
        given = [each.node for each in ordered[: ordered.index(backward)]]
        values = [
            node.value
            for node in given
            if isinstance(node, ast.Assign)
            and any(getattr(target, "id", "") == name for target in node.targets)
        ]
        loss = values[-1] if values else None
    method = getattr(loss, "func", None)
    if not isinstance(method, ast.Attribute) or method.attr != "scale":
        return None
    return method.value if dotted_name(method.value) is not None else None


def _is_scaler(node: ast.expr, ordered: Sequence[Step], scope: Scope) -> bool:
    """Whether it was made as a gradient scaler, or is used like one and may be one."""
    values = resolve(node, scope)
    if any(isinstance(value, Instance) and value.name in SCALERS for value in values):
        return True
    is_unknown = all(value == ANYTHING for value in values)
    return is_unknown and any(_is_method(step, "update", ast.unparse(node)) for step in ordered)


def _may_unscale(step: Step, scaler: str) -> bool:
    """Whether gradients may be unscaled by a step, or are used by the optimizer."""
    node = step.node
    if not isinstance(node, ast.Call):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(_is_of_gradient(target) for target in targets)
    name = last_name(node.func)
    if _UNSCALING.search(name) is not None or _is_method(step, "step", scaler):
        return True
    if name in _IN_PLACE and isinstance(node.func, ast.Attribute):
        return _is_of_gradient(node.func.value)
    given = (*node.args, *(keyword.value for keyword in node.keywords))
    return any(ast.unparse(value) == scaler for value in given)


def _is_of_gradient(node: ast.expr) -> bool:
    """Whether an expression is `p.grad`, `p.grad.data` or a part of them."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "grad" for part in nodes_below(node)
    )


def _may_be_without_scaler(backward: Step, clip: Step, step: Step) -> bool:
    """Whether the clipping has a condition of its own that may say that there is no scaler."""
    own = clip.conditions() - backward.conditions() - step.conditions()
    return any(_PRECISION.search(text) is not None for text, _ in own)


def _unscaling(found: _TrainingStep, clips: Sequence[Step], ordered: Sequence[Step]) -> str | None:
    """`scaler.unscale_(optimizer)`, where that is sure to run just once before each step."""
    optimizer = _optimizer(found, ordered)
    together = ordered[ordered.index(found.backward) : ordered.index(found.step)]
    if (
        optimizer is None
        or not isinstance(found.clip.statement, _SIMPLE)
        or not _runs_with(found.clip.way, found.step.way)
        or _is_conditional(found.backward.way, found.clip.way)
        or not all(_is_certain_before(found.clip, other) for other in clips if other in together)
    ):
        return None
    return f"{found.scaler}.unscale_({optimizer})"


def _optimizer(found: _TrainingStep, ordered: Sequence[Step]) -> str | None:
    """The only optimizer that is stepped after the clipping, before gradients are computed anew."""
    optimizers: set[str] = set()
    for step in ordered[ordered.index(found.clip) + 1 :]:
        if _is_method(step, "backward"):
            break
        if _is_method(step, "unscale_"):
            return None  # too late, and twice would be an error
        if _is_method(step, "step", found.scaler) and isinstance(step.node, ast.Call):
            given = step.node.args[:1]
            is_plain = bool(given) and dotted_name(given[0]) is not None
            optimizers.add(ast.unparse(given[0]) if is_plain else "")
    return optimizers.pop() or None if len(optimizers) == 1 else None


def _runs_with(clip: Way, step: Way) -> bool:
    """Whether the clipping runs at most once for each step, and never without it."""
    at = meeting(clip, step)
    if at is None or any(isinstance(turn.owner, _LOOPS) for turn in clip[at + 1 :]):
        return False
    return not _is_conditional(step, clip)


def _is_conditional(first: Way, second: Way) -> bool:
    """Whether the first has conditions or loops around it that the second has not."""
    at = meeting(first, second)
    if at is None:
        return True
    return any(not isinstance(turn.owner, (ast.With, ast.AsyncWith)) for turn in first[at + 1 :])


def _is_certain_before(clip: Step, other: Step) -> bool:
    """Whether what is put in front of a clipping need not be put in front of another one, too."""
    at = meeting(clip.way, other.way)
    if clip is other or at is None:
        return True
    is_first = clip.way[at].index < other.way[at].index
    return is_first and at == len(clip.way) - 1
