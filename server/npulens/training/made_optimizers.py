"""The optimizers of a script: what makes them, and whose parameters they are given."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.step_loops import StepLoop

_OF_MODEL = frozenset({"parameters", "named_parameters"})


def optimizer_names(sites: CallSites) -> frozenset[str]:
    """What the optimizers of a file are called that it makes, of one model or of several."""
    found = set()
    for site, call in sites.calls():
        statement = site.statement
        if isinstance(statement, ast.Assign) and statement.value is call:
            made = [v.name for v in resolve(call, site.scope) if isinstance(v, Instance)]
            if any(".optim." in name and ".lr_scheduler" not in name for name in made):
                found |= {ast.unparse(target) for target in statement.targets}
    return frozenset(found)


class MadeOptimizer(NamedTuple):
    """A statement that makes an optimizer.

    Attributes:
        statement: The assignment.
        site: The call that makes it.
        optimizer: What the assignment calls the optimizer.
        model: The expression of the model whose parameters the optimizer is given.
    """

    statement: ast.Assign | ast.AnnAssign
    site: Site
    optimizer: ast.expr
    model: ast.expr


def made_optimizers(sites: CallSites) -> tuple[MadeOptimizer, ...]:
    """The assignments that make an optimizer of the parameters of one model, in order."""
    found = []
    for site, call in sites.calls():
        statement = site.statement
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not call:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        model = _only_model(call, site, sites)
        is_named = len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute))
        if model is None or not is_named or not _makes_optimizer(call, targets[0], site):
            continue
        found.append(MadeOptimizer(statement, site, targets[0], model))
    return tuple(found)


def _makes_optimizer(call: ast.Call, target: ast.expr, site: Site) -> bool:
    made = [value.name for value in resolve(call, site.scope) if isinstance(value, Instance)]
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    is_named = "optim" in name.lower() or "opt" in name.lower().split("_")
    return is_named or any(".optim" in each for each in made)


def _only_model(call: ast.Call, site: Site, sites: CallSites) -> ast.expr | None:
    """The model of `SGD(model.parameters())`; `None` if there are several or none is named."""
    owners = _owners([*call.args, *(keyword.value for keyword in call.keywords)], site)
    if not owners:
        owners = _given_to_maker(call, site, sites)
    model = next(iter(owners.values()), None)
    return model if len(owners) == 1 and isinstance(model, (ast.Name, ast.Attribute)) else None


def _owners(given: Iterable[ast.expr], site: Site) -> dict[str, ast.expr]:
    """What `.parameters()` is called on in some arguments, and in what their names were assigned.

    Groups of parameters are often put together in a variable before.
    """
    pending = list(given)
    found: dict[str, ast.expr] = {}
    seen: set[str] = set()
    while pending:
        for part in nodes_below(pending.pop()):
            if isinstance(part, ast.Attribute) and part.attr in _OF_MODEL:
                found[ast.dump(part.value)] = part.value
            elif isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                pending += _assigned_before(part.id, site)
    return found


def _assigned_before(name: str, site: Site) -> Iterator[ast.expr]:
    """What a name of the same function was assigned before a call, besides by other calls."""
    function = site.function
    for statement in () if function is None else nodes_below(function):
        if not isinstance(statement, ast.Assign) or statement.lineno >= site.node.lineno:
            continue
        if name not in {getattr(target, "id", "") for target in statement.targets}:
            continue
        value = statement.value
        if not isinstance(value, ast.Call) or getattr(value.func, "id", "") in ("list", "filter"):
            yield value


def _given_to_maker(call: ast.Call, site: Site, sites: CallSites) -> dict[str, ast.expr]:
    """The argument that a function of the file takes the parameters of."""
    found: dict[str, ast.expr] = {}
    for function in sites.run_by(site):
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        given = dict(zip(names, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        for part in nodes_below(function):
            if isinstance(part, ast.Attribute) and part.attr in _OF_MODEL:
                argument = given.get(getattr(part.value, "id", ""))
                if argument is not None:
                    found[ast.dump(argument)] = argument
    return found


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
