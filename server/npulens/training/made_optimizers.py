"""The optimizers of a script: what makes them, and whose parameters they are given."""

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.values import is_none, last_name
from npulens.syntax.walking import choices, nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.flow import Flow, Variable
from npulens.training.participants import base_of, holders, owners_of_parameters
from npulens.training.training_script import TrainingScript

_BUILTINS = frozenset(dir(builtins))
_OF_MODULES = frozenset(
    {"train", "eval", "parameters", "named_parameters", "modules", "named_modules", "no_sync"}
)
"""Methods that only modules of PyTorch have, or wrappers of them."""
_WRAPPED = frozenset({"module", "_orig_mod"})
"""What wrappers call the model inside of them, which has the same parameters."""
_SHARED = (ast.ClassDef, ast.Module)
"""What has variables that all its functions know."""


def optimizers_made(sites: CallSites) -> dict[ast.expr, set[str]]:
    """What makes the optimizers of a file, of one model or of several, and what each is called."""
    found: dict[ast.expr, set[str]] = {}
    for site, call in sites.calls():
        statement = site.statement
        if isinstance(statement, ast.Assign) and statement.value is call:
            made = [v.name for v in resolve(call, site.scope) if isinstance(v, Instance)]
            if _is_given_something(call) and any(map(_is_class_of_optimizers, made)):
                found[call] = {ast.unparse(target) for target in statement.targets}
    return found


def _is_given_something(call: ast.Call) -> bool:
    """Whether a call may be given parameters: what only drives optimizers gets them later."""
    given = {keyword.arg for keyword in call.keywords}
    return bool(call.args) or bool(given & {"params", "model", "model_params", None})


def _is_class_of_optimizers(name: str) -> bool:
    return ".optim." in name and _is_class(name)


class MadeOptimizer(NamedTuple):
    """A statement that makes an optimizer.

    Attributes:
        statement: The assignment.
        site: The call that makes it.
        optimizer: What the assignment calls the optimizer.
        models: The models whose parameters it is given, as the function of the statement calls
            them.
    """

    statement: ast.Assign | ast.AnnAssign
    site: Site
    optimizer: ast.expr
    models: tuple[str, ...]


def made_optimizers(training: TrainingScript, flow: Flow) -> tuple[MadeOptimizer, ...]:
    """The assignments that make an optimizer of the parameters of models, in order."""
    found = []
    for site, call in training.sites.calls():
        statement = site.statement
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        if call not in _certain(statement.value) or _is_builtin(call):
            continue
        target = _optimizer_among(statement, call, site)
        models = None if target is None else _models(call, site, training, flow)
        if target is not None and models:
            found.append(MadeOptimizer(statement, site, target, models))
    makers = {each.site.function for each in found} - {None}
    found = [
        each for each in found if makers.isdisjoint(training.sites.run_by(each.site))
    ]  # not where a function is called that has one of the others
    return tuple(_without_wrapped(found, flow))


def replaced_model(
    made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> ast.stmt | None:
    """The statement before the training that loads another model than the optimizer was given.

    The optimizer goes on with the parameters of the first, which nobody computes any more. A
    wrapper is given the model, and has its parameters.
    """
    lines = [each.statement.lineno for each in made]
    ways = [site for step in training.steps for way in step.ways for site in way.sites]
    for each in made:
        begin = each.statement.lineno
        trains = [s.statements[0].lineno for s in ways if s.function is each.site.function]
        later = [line for line in (*lines, *trains) if line > begin]
        for name in each.models:
            variable = _variable(name, each.site.node, flow)
            for definition in () if variable is None else flow.definitions.get(variable, ()):
                statement = definition.statement
                is_here = flow.places[statement].function is each.site.function
                is_between = bool(trains) and begin < statement.lineno < min(later, default=0)
                if is_here and is_between and not _has(statement, name):
                    return statement
    return None


def _variable(name: str, place: ast.expr, flow: Flow) -> Variable | None:
    """The variable of a dotted name, or of what it is a part of."""
    while name:
        found = flow.variable(_named(name, place), flow.places[place])
        if found is not None:
            return found
        name = name.rpartition(".")[0]
    return None


def _named(name: str, place: ast.expr) -> ast.expr:
    """The expression of a dotted name, at the place of another: what it means depends on that."""
    root, *path = name.split(".")
    node: ast.expr = ast.copy_location(ast.Name(root, ast.Load()), place)
    for part in path:
        node = ast.copy_location(ast.Attribute(node, part, ast.Load()), place)
    return node


def _has(statement: ast.stmt, name: str) -> bool:
    """Whether a statement may make something anew out of itself: it loads no other one."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Call):
        return True
    is_load = last_name(value.func) in ("load", "load_model")
    return not is_load or any(f"{name}.".startswith(f"{ast.unparse(n)}.") for n in _named_in(value))


def _named_in(value: ast.expr) -> Iterator[ast.expr]:
    return (n for n in nodes_below(value) if isinstance(n, (ast.Name, ast.Attribute)))


def _without_wrapped(found: Sequence[MadeOptimizer], flow: Flow) -> Iterator[MadeOptimizer]:
    """Each optimizer once, where it is given to a call and named anew.

    `model, optimizer = accelerator.prepare(model, optimizer)` makes no second optimizer; in another
    function it is what the steps have.
    """
    wrapped = {w: made for w in found for made in found if made is not w and _wraps(w, made, flow)}
    kept = {w: made for w, made in wrapped.items() if w.site.function is not made.site.function}
    for each in found:
        if each in kept:
            given = {ast.unparse(argument) for argument in _arguments(each)}
            own = kept[each].models
            yield each._replace(models=own) if given.issuperset(own) else each
        elif each not in wrapped and each not in kept.values():
            yield each


def _wraps(wrapping: MadeOptimizer, made: MadeOptimizer, flow: Flow) -> bool:
    """Whether a call that returns an optimizer is given one."""
    return any(
        value.node is made.site.node
        for argument in _arguments(wrapping)
        if isinstance(argument, (ast.Name, ast.Attribute))
        and ast.unparse(argument) == ast.unparse(wrapping.optimizer)
        for value in flow.origins(argument)
    )


def _arguments(made: MadeOptimizer) -> list[ast.expr]:
    call = made.site.node
    return [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []


def _is_builtin(call: ast.Call) -> bool:
    """`param_optimizer = list(model.named_parameters())` makes no optimizer."""
    return isinstance(call.func, ast.Name) and call.func.id in _BUILTINS


def _certain(value: ast.expr) -> list[ast.expr]:
    """What a value may be, if none of it is `None`: `given or Adam(...)`."""
    parts = value.values if isinstance(value, ast.BoolOp) else [value]
    found = [each for part in parts for each in choices(part)]
    return [] if any(is_none(each) for each in found) else found


def _optimizer_among(
    statement: ast.Assign | ast.AnnAssign, call: ast.Call, site: Site
) -> ast.expr | None:
    """The target of an assignment that is an optimizer: `optimizer, schedule = make(model)`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1:
        return None
    several = isinstance(targets[0], (ast.Tuple, ast.List))
    each = targets[0].elts if isinstance(targets[0], (ast.Tuple, ast.List)) else targets
    named = [t for t in each if isinstance(t, (ast.Name, ast.Attribute))]
    if several:
        found = [t for t in named if _is_named_so(t)]
        return found[0] if len(found) == 1 else None
    return next((t for t in named if _makes_optimizer(call, t, site)), None)


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper() and ".lr_scheduler" not in name


def _makes_optimizer(call: ast.Call, target: ast.expr, site: Site) -> bool:
    made = [value.name for value in resolve(call, site.scope) if isinstance(value, Instance)]
    is_state = getattr(call.func, "attr", "") == "state_dict"
    if is_state or any("sched" in each for each in (last_name(target).lower(), *made)):
        return False
    return _is_named_so(target) or any(".optim" in each for each in made)


def _is_named_so(target: ast.expr) -> bool:
    name = last_name(target).lower()
    return "sched" not in name and ("optim" in name or "opt" in name.split("_"))


def _models(
    call: ast.Call, site: Site, training: TrainingScript, flow: Flow
) -> tuple[str, ...] | None:
    """The models of `SGD(model.parameters())`; `None` if one has no name here.

    Groups of parameters may be put together before, or by a function of the file that is given
    the model. A function of another file is given the model itself.
    """
    owners = [o for v in flow.origins(call) for o in owners_of_parameters(v.node, flow)]
    names = {name_here(base_of(owner, flow), site, flow): None for owner in owners}
    path = _path_to_part(owners, flow) if None not in names and [*names] != ["self"] else ""
    if path and not any(_is_made_later(name, site, flow) for name in names if name):
        return tuple(f"{name}{path}" for name in names)
    if [*names] == ["self"] and (part := _only_part(call, site, flow)):
        return (part,)
    if not names and _is_stepped(call, training, flow):
        names = dict.fromkeys(_given_models(call, site, training, flow))
    return None if None in names else tuple(each for each in names if each is not None)


def _path_to_part(owners: Sequence[ast.expr], flow: Flow) -> str:
    """`.head`, where all parameters are of one part of a model; the rest is not trained."""
    if len({ast.unparse(owner) for owner in owners}) != 1:
        return ""
    path, owner = "", owners[0]
    base = base_of(owner, flow)
    while owner is not base:
        if not isinstance(owner, ast.Attribute) or owner.attr in _WRAPPED:
            return ""
        path, owner = f".{owner.attr}{path}", owner.value
    return path


def _is_made_later(name: str, site: Site, flow: Flow) -> bool:
    """Whether a name gets another value behind a statement, such as a wrapper without the part."""
    variable = _variable(name, site.node, flow)
    made = [] if variable is None else flow.definitions.get(variable, [])
    statements = (each.statement for each in made)
    return any(
        each.lineno > site.statement.lineno and flow.places[each].function is site.function
        for each in statements
    )


def _only_part(call: ast.Call, site: Site, flow: Flow) -> str:
    """`self.model`, where an object that keeps the optimizer trains one part of itself."""
    statement = site.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if not any(ast.unparse(target).startswith("self.") for target in targets):
        return ""
    found = set()
    for value in flow.origins(call):
        for owner in owners_of_parameters(value.node, flow):
            while isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Attribute):
                owner = owner.value
            found.add(ast.unparse(owner))
    part = found.pop() if len(found) == 1 else ""
    return part if part.startswith("self.") else ""


def _is_stepped(call: ast.Call, training: TrainingScript, flow: Flow) -> bool:
    return any(
        value.node is call
        for update in training.updates
        for value in flow.origins(update.optimizer)
    )


def _given_models(
    call: ast.Call, site: Site, training: TrainingScript, flow: Flow
) -> Iterator[str]:
    """The models among the arguments of a call, by what is done with them in the same function."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(call.func, ast.Attribute):
        given.append(call.func.value)  # `model.configure_optimizers(...)`
    made = [value.name for value in resolve(call, site.scope) if isinstance(value, Instance)]
    is_of_torch = any(name.startswith("torch.optim.") for name in made)
    for each in given:
        is_asked = isinstance(each, ast.Call) and "param" in last_name(each.func).lower()
        if is_asked and isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            each = each.func.value
            if is_of_torch and flow.variable(each) is not None and last_name(each) != "self":
                yield ast.unparse(each)
                continue
        asked = each.func if isinstance(each, ast.Call) and not is_asked else None
        if is_of_torch and isinstance(asked, ast.Attribute):
            if _is_called_model(asked.value, training, flow):  # `model.trainable_modules()`
                yield ast.unparse(asked.value)
            continue
        variable = flow.variable(each) if isinstance(each, (ast.Name, ast.Attribute)) else None
        if variable is not None and any(
            isinstance(other.func, ast.Attribute)
            and other.func.attr in _OF_MODULES
            and len(other.args) <= 1  # `experiment.eval(model, loader)` is of no module
            and flow.variable(other.func.value) == variable
            for _, other in training.sites.calls()
        ):
            yield ast.unparse(each)


def _is_called_model(node: ast.expr, training: TrainingScript, flow: Flow) -> bool:
    """Whether something is called itself, as a model is with a batch."""
    variable = flow.variable(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return variable is not None and any(
        isinstance(call.func, (ast.Name, ast.Attribute)) and flow.variable(call.func) == variable
        for _, call in training.sites.calls()
    )


def name_here(model: ast.expr, site: Site, flow: Flow) -> str | None:
    """What a model, or another value, is called in the function of a statement."""
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
    held = held or _given_through(model, site, flow)
    return held.pop() if len(held) == 1 else None


def _given_through(node: ast.expr, site: Site, flow: Flow) -> set[str]:
    """What a function calls a value that it is given, and gives on to where it is named."""
    found, known = set[str](), set[Variable]()
    pending = [node]
    while pending:
        variable = flow.variable(pending.pop())
        if variable is None or variable in known:
            continue
        known.add(variable)
        if variable.owner is site.function:
            found.add(variable.name)
        elif flow.is_parameter(variable):
            pending += flow.given(variable)
    return found
