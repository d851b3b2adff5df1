"""The optimizers of a script: what makes them, and whose parameters they are given."""

import ast
from typing import NamedTuple

from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.flow import Flow
from npulens.training.participants import base_of, holders, owners_of_parameters
from npulens.training.step_loops import StepLoop

_SHARED = (ast.ClassDef, ast.Module)
"""What has variables that all its functions know."""


def optimizer_names(sites: CallSites) -> frozenset[str]:
    """What the optimizers of a file are called that it makes, of one model or of several."""
    found = set()
    for site, call in sites.calls():
        statement = site.statement
        if isinstance(statement, ast.Assign) and statement.value is call:
            made = [v.name for v in resolve(call, site.scope) if isinstance(v, Instance)]
            if any(".optim." in name and _is_class(name) for name in made):
                found |= {ast.unparse(target) for target in statement.targets}
    return frozenset(found)


class MadeOptimizer(NamedTuple):
    """A statement that makes an optimizer.

    Attributes:
        statement: The assignment.
        site: The call that makes it.
        optimizer: What the assignment calls the optimizer.
        model: The model whose parameters it is given, as the function of the statement calls it.
    """

    statement: ast.Assign | ast.AnnAssign
    site: Site
    optimizer: ast.expr
    model: str


def made_optimizers(sites: CallSites, flow: Flow) -> tuple[MadeOptimizer, ...]:
    """The assignments that make an optimizer of the parameters of one model, in order."""
    found = []
    for site, call in sites.calls():
        statement = site.statement
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not call:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        model = _only_model(call, site, flow)
        is_named = len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute))
        if model is None or not is_named or not _makes_optimizer(call, targets[0], site):
            continue
        found.append(MadeOptimizer(statement, site, targets[0], model))
    return tuple(found)


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper() and ".lr_scheduler" not in name


def _makes_optimizer(call: ast.Call, target: ast.expr, site: Site) -> bool:
    made = [value.name for value in resolve(call, site.scope) if isinstance(value, Instance)]
    name = (target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")).lower()
    is_state = getattr(call.func, "attr", "") == "state_dict"
    if is_state or any("sched" in each for each in (name, *made)):
        return False
    is_named = "optim" in name or "opt" in name.split("_")
    return is_named or any(".optim" in each for each in made)


def _only_model(call: ast.Call, site: Site, flow: Flow) -> str | None:
    """The model of `SGD(model.parameters())`; `None` if there are several or none is named here.

    Groups of parameters may be put together before, or by a function of the file that is given
    the model.
    """
    names = set()
    for value in flow.origins(call):
        for owner in owners_of_parameters(value.node, flow):
            names.add(_name_here(base_of(owner, flow), site, flow))
    return names.pop() if len(names) == 1 else None


def _name_here(model: ast.expr, site: Site, flow: Flow) -> str | None:
    """What a model is called in the function of a statement."""
    variable = flow.variable(model)
    if variable is None:
        return None
    if variable.owner is site.function or isinstance(variable.owner, _SHARED):
        return ast.unparse(model)
    held = {
        each.name
        for each in holders(model, flow)
        if each.owner is site.function or isinstance(each.owner, ast.Module)
    }
    return held.pop() if len(held) == 1 else None


def accumulation(step: StepLoop) -> str | None:
    """How many times gradients are added up for an update, as it is written; `None` if unclear.

    `1` where each backward pass is followed by an update, `n` of `if (i + 1) % n == 0:`.
    """
    for update in step.updates:
        for statement in update.site.statements:
            if isinstance(statement, ast.If) and statement.lineno > step.loop.lineno:
                found = _every(statement.test)
                if found is not None:
                    return found if found.isdigit() else None
    innermost = {b.site.loops for b in step.backwards}
    updated = {u.site.loops for u in step.updates}
    return "1" if innermost <= updated or not innermost else None


def _every(test: ast.expr) -> str | None:
    """`n` of a condition with `step % n`."""
    for node in nodes_below(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return ast.unparse(node.right)
    return None
