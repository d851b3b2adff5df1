"""A model and its optimizer as the function with the outermost training loop calls them."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.values import is_none
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import Loop, Site
from npulens.training.flow import Flow, Variable
from npulens.training.made_optimizers import MadeOptimizer, name_here
from npulens.training.schedules import scheduled
from npulens.training.training_script import TrainingScript

_MOVES = frozenset(
    {"to", "cuda", "npu", "half", "float", "double", "bfloat16", "share_memory", "compile"}
    | {"to_empty", "_apply"}
)
_OF_MODELS = frozenset({"train", "parameters", "named_parameters"})


class LoopPlace(NamedTuple):
    """The outermost loop of the steps, and what is trained in it.

    Attributes:
        site: A call in the loop, in the function of the loop.
        model: What the model is called before the loop.
        optimizer: What its optimizer is called there.
    """

    loop: Loop
    site: Site
    model: str
    optimizer: str

    def is_changed_before(self, flow: Flow) -> bool:
        """Whether the function of the loop moves or wraps the model before the loop."""
        function = self.site.function
        if function is None:
            return False
        above = (s for s in function.body if s.lineno < self.loop.lineno)
        names = {self.model, self.optimizer}
        return any(changes(each, names, flow) for each in above if self.loop is not each)

    def has(self, made: MadeOptimizer, flow: Flow) -> bool:
        """Whether the model is the only one of those that another function calls so."""
        models = made.models
        if models == (self.model,) or _given_by(self.site, made, flow) == {self.model}:
            return True
        return len(models) == 1 and _given_as(self.model, self.site, flow) == set(models)


def _given_by(site: Site, made: MadeOptimizer, flow: Flow) -> set[str]:
    """What the function of a place gives to the one that makes an optimizer of it."""
    maker = made.site.function
    if maker is None or len(made.models) != 1 or not made.models[0].isidentifier():
        return set()
    variable = Variable(maker, made.models[0])
    given = flow.given(variable) if flow.is_parameter(variable) else []
    return {ast.unparse(e) for e in given if flow.places[e].function is site.function}


def _given_to(site: Site, made: MadeOptimizer, flow: Flow) -> set[str]:
    """What the function of a place calls a model that it is given where the optimizer is made."""
    function = site.function
    if function is None or len(made.models) != 1:
        return set()
    found = set()
    for each in (*function.args.args, *function.args.kwonlyargs):
        given = flow.given(Variable(function, each.arg))
        is_here = all(flow.places[e].function is made.site.function for e in given)
        if given and is_here and {ast.unparse(e) for e in given} == {made.models[0]}:
            found.add(each.arg)
    return found


def _given_as(name: str | None, site: Site, flow: Flow) -> set[str]:
    """What calls give for a parameter of the function of a place, if they call it otherwise."""
    if name is None or site.function is None or not name.isidentifier():
        return set()
    variable = Variable(site.function, name)
    given = flow.given(variable) if flow.is_parameter(variable) else []
    return {ast.unparse(each) for each in given} - {name}


def loop_place(
    training: TrainingScript, flow: Flow, made: Sequence[MadeOptimizer]
) -> LoopPlace | None:
    """The place before the loops, if one model with one optimizer is known there.

    A loop over the batches alone may be run once for each epoch, by another file. Loops that make
    the optimizer in each turn, as for the parts of a cross-validation, are not those of training.
    """
    if len(training.steps) != 1:
        return None
    step = training.steps[0]
    way = step.ways[0]
    around = {each for one in made for each in one.site.loops}
    loop = next((each for each in way.loops if each not in around), None)
    if loop is None:
        return None
    site = next(each for each in way.sites if loop in each.loops)
    is_outermost = loop is way.loops[0]
    if is_outermost and loop is step.loop and way.start is not None:
        return None
    optimizers = {name_here(each.optimizer, site, flow) for each in step.updates}
    models = _own_models(made, site, flow)
    models = models or {name_here(each, site, flow) for each in _trained(training)}
    models = models or {name for each in made for name in _given_by(site, each, flow)}
    if models <= {None}:
        models = {name for each in made for name in _given_to(site, each, flow)}
    models -= {text for each in models - {None} for text in _given_as(each, site, flow)}
    optimizer, model = optimizers.pop(), models.pop() if models else None
    if optimizers or models or optimizer is None or model is None:
        return None
    if any(_may_be_none(each.optimizer, flow) for each in step.updates):
        return None
    place = LoopPlace(loop, site, model, optimizer)
    return place if _stays(place, flow) else None


def _own_models(made: Sequence[MadeOptimizer], site: Site, flow: Flow) -> set[str | None]:
    """The models of optimizers that another method of the same object makes."""
    owner = flow.places[site.node].owner
    if owner is None or not made:
        return set()
    family = flow.program.family(owner)
    for each in made:
        maker = flow.places[each.site.node].owner
        if maker is None or flow.program.family(maker) is not family:
            return set()
    names = {name for each in made for name in each.models}
    return set(names) if all(name.startswith("self.") for name in names) else set()


def _may_be_none(optimizer: ast.expr, flow: Flow) -> bool:
    """Whether a script also runs without an optimizer, to evaluate."""
    if any(is_none(each.node) for each in flow.origins(optimizer)):
        return True
    variable = flow.variable(optimizer)
    if variable is None or not isinstance(variable.owner, Function):
        return False
    defaults = with_defaults(variable.owner.args)
    return any(each.arg == variable.name and is_none(default) for each, default in defaults)


def _trained(training: TrainingScript) -> Iterator[ast.expr]:
    """What is put into training mode, or asked for its parameters, where steps are made."""
    step = training.steps[0]
    ends = [each.site for each in step.updates] + [each.site for each in step.backwards]
    functions = {
        site.function
        for end in ends
        for path in training.sites.paths_to(end)
        for site in path.sites
        if step.loop in path.loops
    }
    for site, call in training.sites.calls():
        called = call.func
        if not isinstance(called, ast.Attribute) or called.attr not in _OF_MODELS:
            continue
        is_named = isinstance(called.value, (ast.Name, ast.Attribute))
        if is_named and site.function in functions and ast.unparse(called.value) != "self":
            yield called.value


def _stays(place: LoopPlace, flow: Flow) -> bool:
    """Whether both are there before the loop, and the loop leaves them as they are."""
    names = {place.model, place.optimizer}
    if any(changes(each, names, flow) for each in place.loop.body):
        return False
    function = place.site.function
    for name in names:
        if name.isidentifier() and isinstance(function, Function):
            node = ast.Name(name, ast.Load())
            variable = flow.variable(node, flow.places[place.site.node])
            made = [] if variable is None else flow.definitions.get(variable, [])
            is_given = variable is not None and flow.is_parameter(variable)
            if not is_given and not any(d.statement.lineno < place.loop.lineno for d in made):
                return False
    return True


def changes(statement: ast.stmt, names: set[str], flow: Flow, *, is_deep: bool = True) -> bool:
    """Whether a statement moves or wraps something, assigns it anew, or makes its schedule.

    Methods of the same object that it calls do that, too; and what moves a whole moves its parts.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    for node in nodes_below(statement):
        changed: ast.expr | None = None
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            changed = node
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _MOVES:
            changed = getattr(node.func, "value", None)
        if changed is not None:
            text = ast.unparse(changed)
            if text in names or any(name.startswith(f"{text}.") for name in names):
                return True
        if _is_schedule_of(node, names, flow):
            return True
        if is_deep and isinstance(node, ast.Call) and _is_own_method(node.func):
            own = {name for name in names if name.startswith("self.")}
            for function in flow.functions_run(node) if own else ():
                if any(changes(each, own, flow, is_deep=False) for each in function.body):
                    return True
    return False


def _is_own_method(function: ast.expr) -> bool:
    """`self.prepare`, and not `self.model.train`, which may have the name of an own one."""
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "self"


def makes_schedule_of(statement: ast.stmt, names: set[str], flow: Flow) -> bool:
    """Whether a statement makes a schedule of an optimizer."""
    return any(_is_schedule_of(node, names, flow) for node in nodes_below(statement))


def _is_schedule_of(node: ast.AST, names: set[str], flow: Flow) -> bool:
    return isinstance(node, ast.Call) and any(
        isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) in names
        for each in scheduled(node, flow)
    )
