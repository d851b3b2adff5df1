"""Optimizers inside of wrappers, which step them and set the learning rate."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import Site
from npulens.training.flow import Flow
from npulens.training.loss_regions import assigned_names
from npulens.training.program import FindModule, Program
from npulens.training.training_script import TrainingScript, read_program
from npulens.training.turns import turns
from npulens.training.updates import Update

_OF_OPTIMIZERS = frozenset({"param_groups", "add_param_group"})


def path_to_optimizer(training: TrainingScript, flow: Flow, find: FindModule | None) -> str:
    """What leads from what a script steps to the optimizer of PyTorch: `._optimizer`, or nothing.

    Args:
        training: What the script does to train.
        flow: Where its values come from.
        find: Finds the modules that it imports, which may have the class of the wrapper.

    Raises:
        UnclearError: A wrapper is stepped, and what it wraps is not known.
    """
    updates = [update for turn in turns(training) for update in turn.updates]
    if not updates:
        return ""
    if find is not None:
        flow = read_program(Program(training.sites.program.start, find))[1]
    found: dict[str, Update] = {}
    for update in _outer(updates, training, flow):
        classes = [*_classes(update.optimizer, flow)]
        wrappers = [each for each in classes if not _is_optimizer(each, flow.program)]
        inner = {name for each in wrappers for name in _wrapped(each, flow.program)}
        is_known = len(inner) == 1 if wrappers else _is_plain(update) or bool(classes)
        is_known = is_known and (bool(classes) or not _computes_loss(update, training))
        if not is_known or (wrappers and len(wrappers) < len(classes)):
            raise UnclearError(update.site.node.lineno, "instrument.watches-wrapper")
        found["".join(f".{name}" for name in inner)] = update
    if len(found) > 1:
        line = [*found.values()][1].site.node.lineno
        raise UnclearError(line, "instrument.watches-wrapper")
    return next(iter(found), "")


def of_accelerate(optimizer: str, count: str, spot: Site, line: int, flow: Flow) -> str:
    """What to watch of an optimizer that `accelerator.prepare` returned, where gradients add up.

    The `step()` of the wrapper is called for each batch, that of the optimizer inside for each
    update. With a scaler the wrapper puts back the `step()` that it found.
    Source: accelerate, `AcceleratedOptimizer.step` (`optimizer.py`).
    """
    if count == "1":
        return optimizer
    prepared = [
        site
        for site, call in flow.sites.calls()
        if last_name(call.func) == "prepare" and _is_kept_as(optimizer, call, site)
    ]
    is_known = any(s.function is spot.function and s.node.lineno < line for s in prepared)
    return (
        f"{optimizer} if {optimizer}.scaler else {optimizer}.optimizer" if is_known else optimizer
    )


def _is_kept_as(name: str, call: ast.Call, site: Site) -> bool:
    """`model, optimizer = accelerator.prepare(model, optimizer)`."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return False
    kept = (part for target in statement.targets for part in getattr(target, "elts", [target]))
    return any(ast.unparse(each) == name for each in kept)


def _outer(updates: Sequence[Update], training: TrainingScript, flow: Flow) -> list[Update]:
    """The updates that are not made by a wrapper which is stepped as well."""
    run = {f for update in updates for f in training.sites.run_by(update.site)}
    run |= {
        method
        for update in updates
        for made in _classes(update.optimizer, flow)
        for method in made.body
        if isinstance(method, Function)
    }
    return [each for each in updates if each.site.function not in run]


def _is_plain(update: Update) -> bool:
    """`optimizer.step()`, and not the method of a wrapper."""
    node = update.site.node
    called = node.func if isinstance(node, ast.Call) else node
    return update.scaler is not None or last_name(called) == "step"


def _computes_loss(update: Update, training: TrainingScript) -> bool:
    """Whether what is stepped computes the loss as well: `loss, parts = optimizer.loss_of(x)`."""
    losses = {ast.unparse(backward.loss) for backward in training.backwards}
    for site, call in training.sites.calls():
        called, statement = call.func, site.statement
        if not isinstance(called, ast.Attribute) or called.attr == "step":
            continue
        is_kept = isinstance(statement, ast.Assign) and statement.value is call
        is_own = is_kept and ast.unparse(called.value) == ast.unparse(update.optimizer)
        if is_own and not losses.isdisjoint(assigned_names(statement)):
            return True
    return False


def _classes(optimizer: ast.expr, flow: Flow) -> Iterator[ast.ClassDef]:
    """The classes of the program of which an optimizer is."""
    for value in flow.origins(optimizer):
        if not value.path and isinstance(value.node, ast.Call):
            yield from flow.classes_made(value.node)


def _is_optimizer(made: ast.ClassDef, program: Program) -> bool:
    """Whether a class is derived from one of optimizers, or does itself what these do."""
    for each in program.bases(made):
        if any("optim" in ast.unparse(base).lower() for base in each.bases):
            return True
        if any(_is_unknown(base, each, program) for base in each.bases):
            return True
        named = (getattr(n, "name", None) or _own_attribute(n) for n in nodes_below(each))
        if not _OF_OPTIMIZERS.isdisjoint(filter(None, named)):
            return True
    return False


def _is_unknown(base: ast.expr, owner: ast.ClassDef, program: Program) -> bool:
    """Whether a base is of a library, and may be a class of optimizers."""
    if getattr(base, "id", "") == "object" or last_name(base) == "ABC":
        return False
    return not any(program.meant(base, program.module_with[owner].scope))


def _own_attribute(node: ast.AST) -> str:
    """`name` of `self.name = ...`."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return ""
    return node.attr if getattr(node.value, "id", "") == "self" else ""


def _wrapped(made: ast.ClassDef, program: Program) -> Iterator[str]:
    """The attributes in which a wrapper keeps an optimizer."""
    for each in program.bases(made):
        for method in (m for m in each.body if isinstance(m, Function)):
            assigned = (n for n in nodes_below(method) if isinstance(n, ast.Assign))
            for node in assigned:
                name = _own_attribute(node.targets[0])
                if name and _is_kept_optimizer(node.value, each, method, program):
                    yield name


def _is_kept_optimizer(
    value: ast.expr, owner: ast.ClassDef, method: Function, program: Program
) -> bool:
    """Whether `__init__` is given what it keeps under such a name, or makes it."""
    if isinstance(value, ast.Name):
        given: Sequence[ast.arg] = [*method.args.args, *method.args.kwonlyargs]
        is_named = "opt" in value.id.lower().split("_") or "optim" in value.id.lower()
        return is_named and any(each.arg == value.id for each in given)
    scope = program.module_with[owner].scope
    return any(isinstance(v, Instance) and ".optim." in v.name for v in resolve(value, scope))
