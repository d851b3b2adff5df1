"""What goes backward in a script, and what updates weights."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.meanings import Instance, Literal, resolve
from npulens.syntax.scopes import Scope, definitions_around
from npulens.training.call_sites import CallSites, Site

_BACKWARD = frozenset({"backward", "manual_backward"})
_STEPS = frozenset({"step", "optimizer_step", "step_and_update_lr"})
"""What updates weights; the last one is that of wrappers that set the learning rate as well."""
IN_TWO_PASSES = {"second_step": "first_step", "descent_step": "ascent_step"}
"""What updates weights behind a second backward pass, and what changes them behind the first."""
_GIVEN_OPTIMIZERS = frozenset({"optimize"})
"""Methods of trainers that update weights with the optimizer that they are given."""
_OTHER_STEPPERS = ("sched", "scaler", "prof", "env", "logger", "timer", "progress", "ema")
"""What has a `step()` of its own that updates no weights."""


class Update(NamedTuple):
    """A call that updates weights.

    Attributes:
        optimizer: The expression of the optimizer (`optimizer`, `self.opt_g`), as it is written.
        scaler: That of the scaler which steps it; `None` without one.
    """

    site: Site
    optimizer: ast.expr
    scaler: ast.expr | None


class Backward(NamedTuple):
    """A call that computes gradients.

    Attributes:
        loss: The loss, without the scaling around it.
        owner: What goes backward for the loss: a scaler, an `Accelerator`, an engine; `None` where
            the loss does it itself.
    """

    site: Site
    loss: ast.expr
    owner: ast.expr | None


def backwards(sites: CallSites, updating: Iterable[Update]) -> Iterator[Backward]:
    """The calls that compute gradients: `loss.backward()`, `accelerator.backward(loss)`.

    Args:
        sites: The calls of the file.
        updating: What updates weights; a scaler of timm goes backward as well.
    """
    for update in updating:
        if isinstance(update.site.node, ast.Call) and update.scaler is update.site.node.func:
            yield Backward(update.site, update.site.node.args[0], update.scaler)
    for site, call in sites.calls():
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _BACKWARD:
            continue
        receiver = function.value
        if isinstance(receiver, ast.Call) and _last(receiver.func) == "super":
            continue
        if isinstance(receiver, ast.Call) and _last(receiver.func) in ("scale", "scale_loss"):
            owner = receiver.func.value if isinstance(receiver.func, ast.Attribute) else None
            yield Backward(site, receiver.args[0] if receiver.args else receiver, owner)
        elif call.args and not isinstance(call.args[0], ast.Constant) and not _is_loss(receiver):
            yield Backward(site, call.args[0], receiver)
        else:
            yield Backward(site, receiver, None)


def _is_loss(node: ast.expr) -> bool:
    """`loss.backward(gradient)`: a tensor that is given what flows back."""
    return "loss" in _last(node).lower() and "scaler" not in _last(node).lower()


def updates(sites: CallSites) -> Iterator[Update]:
    """The calls that update weights: `optimizer.step()`, `scaler.step(optimizer)`.

    What a class of optimizers does in itself is a part of those that the script makes with it.
    """
    found = [*_updates(sites)]
    outer = [each for each in found if not _is_in_optimizer(each.site)]
    yield from outer or found


def _is_in_optimizer(site: Site) -> bool:
    """Whether a call is in a class that is derived from one of optimizers."""
    around = (each for each in definitions_around(site.scope) if isinstance(each, ast.ClassDef))
    return any(_last(base).endswith("Optimizer") for each in around for base in each.bases)


def is_in_two_passes(update: Update) -> bool:
    """Whether an update is made by `second_step()`, after a backward pass of its own."""
    node = update.site.node
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in IN_TWO_PASSES


def _updates(sites: CallSites) -> Iterator[Update]:
    begun = {
        (ast.unparse(call.func.value), call.func.attr)
        for _, call in sites.calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr in IN_TWO_PASSES.values()
    }
    reset = {
        ast.unparse(call.func.value)
        for _, call in sites.calls()
        if isinstance(call.func, ast.Attribute)
        and (call.func.attr == "zero_grad" or _is_engine(call.func, call))
    }
    for site, call in sites.calls():
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr in _STEPS:
            if _is_optimizer(function.value, site.scope, reset) and _takes_no_other(call):
                yield Update(site, function.value, None)
            elif call.args and _is_optimizer(call.args[0], site.scope, reset):
                yield Update(site, call.args[0], function.value)
        elif isinstance(function, ast.Attribute) and function.attr in IN_TWO_PASSES:
            if (ast.unparse(function.value), IN_TWO_PASSES[function.attr]) in begun:
                yield Update(site, function.value, None)
        elif isinstance(function, ast.Attribute) and function.attr in _GIVEN_OPTIMIZERS:
            if len(call.args) == 1 and _is_optimizer(call.args[0], site.scope, reset):
                yield Update(site, call.args[0], function.value)
        elif "scaler" in _last(function).lower():
            given = [a for a in call.args if _is_optimizer(a, site.scope, reset)]
            if given and len(call.args) > 1:
                yield Update(site, given[0], function)  # timm's `loss_scaler(loss, optimizer, ...)`


def _is_engine(function: ast.Attribute, call: ast.Call) -> bool:
    """`engine.backward(loss)` of DeepSpeed and the like: its `step()` updates weights."""
    if function.attr != "backward" or len(call.args) != 1 or _is_loss(function.value):
        return False
    named = (
        isinstance(function.value, (ast.Name, ast.Attribute)) and _last(function.value) != "self"
    )
    return named and isinstance(call.args[0], (ast.Name, ast.Attribute))


def _takes_no_other(call: ast.Call) -> bool:
    """Whether a step is given nothing, or a closure that computes the loss."""
    return len(call.args) <= 1 and all(
        isinstance(a, (ast.Name, ast.Lambda, ast.Attribute, ast.Constant)) for a in call.args
    )


def _is_optimizer(node: ast.expr, scope: Scope, reset: set[str]) -> bool:
    """Whether an expression is an optimizer, by what made it, by its name or by what it does."""
    if isinstance(node, (ast.Constant, ast.Lambda)):
        return False
    made = [v.name for v in resolve(node, scope) if isinstance(v, Instance)]
    if any(_is_schedule(name) or name.endswith("GradScaler") for name in made):
        return False
    if any(".optim" in name or name.endswith(("AdamW", "Adafactor")) for name in made):
        return True
    if any(isinstance(value, Literal) for value in resolve(node, scope)):
        return False
    name = _last(node).lower()
    if any(other in name for other in _OTHER_STEPPERS):
        return False
    return "optim" in name or "opt" in name.split("_") or ast.unparse(node) in reset


def _is_schedule(made_by: str) -> bool:
    """`transformers.optimization.get_cosine_schedule_with_warmup` is in a module of optimizers."""
    return ".lr_scheduler" in made_by or "sched" in made_by.rpartition(".")[2].lower()


def _last(node: ast.expr) -> str:
    """The last name of an expression: `opt` of `self.opt[0]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
