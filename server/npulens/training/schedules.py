"""What makes the schedule of an optimizer's learning rate."""

import ast
from collections.abc import Iterator

from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.values import last_name
from npulens.training.flow import Flow


def scheduled(call: ast.Call, flow: Flow) -> Iterator[ast.expr]:
    """The arguments of a call that makes a schedule: the optimizer among them.

    Schedules of PyTorch wrap the `step` of the optimizer, which has to be a method still: nothing
    may have replaced it.
    Source: PyTorch, `LRScheduler.__init__` in `torch/optim/lr_scheduler.py`.
    """
    if call in flow.places and _makes_schedule(call, flow):
        yield from (*call.args, *(keyword.value for keyword in call.keywords))


def _makes_schedule(call: ast.Call, flow: Flow) -> bool:
    """Whether a call makes a schedule: it is one of PyTorch, is called so, or kept as one."""
    place = flow.places[call]
    made = [v.name for v in resolve(call, place.scope) if isinstance(v, Instance)]
    if any(".lr_scheduler." in name for name in made) or _is_named_so(last_name(call.func)):
        return True
    statement = place.statements[-1] if place.statements else None
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return False
    parts = (part for target in statement.targets for part in getattr(target, "elts", [target]))
    return any(_is_named_so(last_name(part)) for part in parts) and not _prepares(call)


def _prepares(call: ast.Call) -> bool:
    """`accelerator.prepare(model, optimizer, scheduler)` is given the schedule already."""
    return any(_is_named_so(last_name(each)) for each in call.args)


def _is_named_so(name: str) -> bool:
    return "sched" in name.lower()
