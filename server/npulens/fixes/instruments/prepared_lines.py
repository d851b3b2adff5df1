"""Lines that need a model and its optimizer: where both are ready, and what they are called."""

import ast
from collections.abc import Container, Iterator, Sequence

from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.instrument_model import Instrument, fill
from npulens.fixes.instruments.loop_places import LoopPlace, changes, loop_place, makes_schedule_of
from npulens.fixes.instruments.schedule_order import Spot, require_behind_schedules
from npulens.fixes.instruments.script_places import loop_behind
from npulens.fixes.instruments.wrapped_optimizers import of_accelerate, path_to_optimizer
from npulens.fixes.scripts import UnclearError
from npulens.syntax.values import is_none, last_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.training.accumulation import accumulation, accumulation_options
from npulens.training.call_sites import Loop, Site
from npulens.training.flow import Flow, Value, Variable
from npulens.training.made_optimizers import (
    MadeOptimizer,
    made_optimizers,
    optimizers_made,
    replaced_model,
)
from npulens.training.program import FindModule, FindPrograms
from npulens.training.statement_blocks import block_with
from npulens.training.training_script import TrainingScript
from npulens.training.turns import turns
from npulens.training.updates import Update, is_in_two_passes

_MOST_NAMES = 6
"""How many names a number is followed through."""


def prepared_lines(
    instrument: Instrument,
    training: TrainingScript,
    lines: LineMap,
    above: FindPrograms | None = None,
    find: FindModule | None = None,
) -> Iterator[Insertion]:
    """The lines before the training, or behind each statement that makes the optimizer.

    Raises:
        UnclearError: There are several optimizers, or it is not clear what one is made of.
    """
    flow = Flow(training.sites.program, training.sites)
    if any("{optimizer}" in line for line in instrument.prepared):
        _require_own_step(training)
    made = _stepped(made_optimizers(training, flow), training, flow)
    known = loop_place(training, flow, made)
    loop: Loop | None
    if known is not None and _is_better(known, made, training, flow):
        values = {"model": known.model, "optimizer": known.optimizer}
        loop, spot = known.loop, Spot(known.site, known.loop.lineno)
    else:
        _require_one(made, training, flow)
        first = made[0]
        values = {
            "model": _written(instrument, first, training),
            "optimizer": ast.unparse(first.optimizer),
        }
        loop = loop_behind(training.steps, made)
        last = first.statement.end_lineno or first.statement.lineno
        spot = Spot(first.site, last + 1 if loop is None else loop.lineno)
    ready = {} if loop is not None else _ready_places(made, training, flow)
    places = [spot] if loop is not None else [*ready.values()]
    replaced = replaced_model(made, training, flow)
    if replaced is not None:
        raise UnclearError(replaced.lineno, "instrument.replaced-model")
    if any("{optimizer}" in line for line in instrument.prepared):
        _require_not_handed_on(made, training, flow)
        require_behind_schedules(places, (each.site.node for each in made), training, flow)
        if not _is_given_to_what_steps(values["optimizer"], training):
            values["optimizer"] += path_to_optimizer(training, flow, find)
    if any("{accumulation}" in line for line in instrument.prepared):
        values["accumulation"] = _accumulation(training, spot, flow, above)
        count, name = values["accumulation"], values["optimizer"]
        if _is_of_accelerate(training):
            last = max(each.line for each in places)
            values["optimizer"] = of_accelerate(name, count, spot.site, last, flow)
    filled = [fill(line, values) for line in instrument.prepared]
    if loop is not None:
        yield before(lines, loop, filled, order=2)
        return
    for statement in ready:
        yield behind(lines, statement, filled)


def _ready_places(
    made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> dict[ast.stmt, Spot]:
    """The statements behind which an optimizer and its model are ready, with the lines there."""
    found = {}
    for each in made:
        statement = _ready(each, made, training, flow)
        found[statement] = Spot(each.site, (statement.end_lineno or statement.lineno) + 1)
    return found


def is_of_trainer(instrument: Instrument, training: TrainingScript) -> bool:
    """Whether the Trainer of transformers makes the optimizer that the lines need."""
    if training.steps or not training.runs or "{optimizer}" not in "".join(instrument.prepared):
        return False
    if any(run.name != "transformers" for run in training.runs):
        return False
    return not made_optimizers(training, Flow(training.sites.program, training.sites))


def _stepped(
    made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> Sequence[MadeOptimizer]:
    """The optimizers that steps are made with, where all steps are of some that are known."""
    known = {each.site.node for each in made}
    steps = _origins_of_steps(training, flow)
    return [each for each in made if each.site.node in steps] if steps and steps <= known else made


def _origins_of_steps(training: TrainingScript, flow: Flow) -> set[ast.expr]:
    """What makes the optimizers of the steps; nothing if one is not followed to a call."""
    found = {v.node for update in training.updates for v in flow.origins(update.optimizer)}
    return found if all(isinstance(each, ast.Call) for each in found) else set()


def _is_better(
    known: LoopPlace, made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> bool:
    """Whether lines belong before the loops, and not behind what makes the optimizer.

    It may be made in another file, before the model is moved or wrapped, or in a function that
    is also called to evaluate.
    """
    if not made:
        return True
    stepped = (update.optimizer for step in training.steps for update in step.updates)
    steps = {value.node for each in stepped for value in flow.origins(each)}
    if len(made) > 1 or made[0].site.node not in steps:
        return False
    function = made[0].site.function
    if function is known.site.function or not known.has(made[0], flow):
        return False
    if known.is_changed_before(flow):
        return True
    return function is not None and len({s.function for s in training.sites.callers(function)}) > 1


def _require_one(made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow) -> None:
    """See that one optimizer is made, of models that have a name.

    Raises:
        UnclearError: There are several, or none.
    """
    if not made:
        for step in training.steps:
            several = {ast.unparse(update.optimizer): update for update in step.updates}
            if len(several) > 1:
                line = [*several.values()][1].site.node.lineno
                raise UnclearError(line, "instrument.several-optimizers")
        line = training.updates[0].site.node.lineno if training.updates else 1
        raise UnclearError(line, "instrument.no-optimizer")
    first = made[0]
    same = {value.node for value in flow.origins(first.optimizer)}
    every = optimizers_made(training.sites)
    steps = _origins_of_steps(training, flow)
    left = every.keys() & steps if same & steps else every.keys()
    others = {name for call in left - same for name in every[call]}
    if not others <= {ast.unparse(first.optimizer)}:
        raise UnclearError(first.statement.lineno, "instrument.several-optimizers")
    for each in made[1:]:
        is_same = ast.unparse(each.optimizer) == ast.unparse(first.optimizer)
        if not is_same or each.models != first.models:
            raise UnclearError(each.statement.lineno, "instrument.several-optimizers")
    for each in made:
        if any(_collects(loop, each) for loop in each.site.loops):
            raise UnclearError(each.statement.lineno, "instrument.several-optimizers")


def _collects(loop: Loop, made: MadeOptimizer) -> bool:
    """Whether a loop makes an optimizer in each turn and keeps them all."""
    name = ast.unparse(made.optimizer)
    for node in (part for statement in loop.body for part in nodes_below(statement)):
        if isinstance(node, ast.Call) and last_name(node.func) == "append":
            kept: Sequence[ast.expr] = node.args
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            kept = [node.value]
        else:
            continue
        if any(ast.unparse(each) == name for each in kept):
            return True
    return False


def _is_given_to_what_steps(optimizer: str, training: TrainingScript) -> bool:
    """Whether something else steps an optimizer that a method gave to it."""
    stepped = {ast.unparse(update.optimizer) for update in training.updates}
    return optimizer not in stepped and any(
        isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) in stepped
        and any(ast.unparse(each) == optimizer for each in call.args)
        for _, call in training.sites.calls()
    )


def _require_not_handed_on(
    made: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> None:
    """See that no other file gets an optimizer from here, of which it may make a schedule.

    Raises:
        UnclearError: A function that nothing here calls returns one, without a schedule of it.
    """
    for each in () if training.steps else made:
        function = each.site.function
        if function is None or training.sites.callers(function):
            continue
        if function.name == "configure_optimizers":
            continue  # Lightning makes no schedule itself
        name = ast.unparse(each.optimizer)
        returned = (
            ast.unparse(part)
            for node in nodes_below(function)
            if isinstance(node, ast.Return) and node.value is not None
            for part in nodes_below(node.value)
            if isinstance(part, ast.expr)
        )
        is_made = any(makes_schedule_of(s, {name}, flow) for s in function.body)
        if name in returned and not is_made:
            line = each.statement.lineno
            raise UnclearError(line, "instrument.handed-on", function=function.name)


def _require_own_step(training: TrainingScript) -> None:
    """See that the optimizer is updated by its `step()`, on which hooks are set, and read there."""
    for update in training.updates:
        if is_in_two_passes(update):
            node = update.site.node
            raise UnclearError(node.lineno, "instrument.two-passes-watched", code=ast.unparse(node))
        if update.scaler is None and _is_given_closure(update, training):
            node = update.site.node
            raise UnclearError(node.lineno, "instrument.closure-watched", code=ast.unparse(node))


def _is_given_closure(update: Update, training: TrainingScript) -> bool:
    """`optimizer.step(closure)`, where the function that it is given goes backward."""
    node = update.site.node
    if not isinstance(node, ast.Call) or not node.args:
        return False
    statement = update.site.statement
    ways = (path for each in training.backwards for path in training.sites.paths_to(each.site))
    return any(site.statement is statement for path in ways for site in path.sites[:-1])


def _is_of_accelerate(training: TrainingScript) -> bool:
    """Whether an `Accelerator` goes backward, and tells its optimizers when to update."""
    return any(last_name(call.func) == "Accelerator" for _, call in training.sites.calls())


def _written(instrument: Instrument, made: MadeOptimizer, training: TrainingScript) -> str:
    """The model, or a list of several, without those that may not be there."""
    if len(made.models) == 1:
        return made.models[0]
    if not instrument.takes_models:
        raise UnclearError(made.statement.lineno, "instrument.several-models")
    listed = ", ".join(made.models)
    tree = _module_of(made.site, training)
    if any(_may_be_missing(each, tree) for each in made.models):
        return f"[npu_model for npu_model in ({listed}) if npu_model is not None]"
    return f"[{listed}]"


def _may_be_missing(model: str, tree: ast.Module) -> bool:
    """Whether a script asks if a model is there: `if encoder is not None:`."""
    return any(
        isinstance(node, ast.Compare)
        and is_none(node.comparators[0])
        and ast.unparse(node.left) == model
        for node in nodes_below(tree)
    )


def _accumulation(
    training: TrainingScript, spot: Spot, flow: Flow, above: FindPrograms | None
) -> str:
    """How many times gradients are added up before an update, as it is called beside a call."""
    written = "1"
    for turn in turns(training):
        found = accumulation(turn, training.sites)
        written = "" if found is None else _here(found, spot, flow)
        if not written:
            raise UnclearError(turn.around.lineno, "instrument.accumulation")
    if not training.updates:
        start = training.sites.program.start
        programs = () if above is None else above(start)
        trees = (start.tree, *(each.start.tree for each in programs))
        given = [
            ast.unparse(value)
            for tree in trees
            for value in accumulation_options(nodes_below(tree))
        ]
        if len(set(given)) > 1 or not all(map(str.isdigit, given)):
            raise UnclearError(spot.line, "instrument.accumulation")
        written = given[0] if given else written
    return written


def _here(number: ast.expr, spot: Spot, flow: Flow, depth: int = 0) -> str:
    """A number, a name or a setting, as the function of a call has it; empty if it does not."""
    if isinstance(number, ast.Call) and isinstance(number.func, ast.Attribute):
        owner = _here(number.func.value, spot, flow, depth)
        return f"{owner}.{number.func.attr}()" if owner else ""
    if isinstance(number, ast.Call) and ast.unparse(number.func) == "len" and number.args:
        counted = _here(number.args[0], spot, flow, depth)
        return f"len({counted})" if counted.isidentifier() or "." in counted else ""
    if isinstance(number, ast.Constant):
        return str(number.value) if isinstance(number.value, int) else ""
    root, is_plain = number, True
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        is_plain &= isinstance(root, ast.Attribute) or isinstance(root.slice, ast.Constant)
        root = root.value
    if not is_plain or not isinstance(root, ast.Name) or depth > _MOST_NAMES:
        return ""
    if root.id == "self":
        return ast.unparse(number) if _has_attribute(number, spot, flow) else ""
    variable = flow.variable(root)
    if variable is None:
        return ""
    rest = ast.unparse(number)[len(root.id) :]
    if variable.owner is spot.site.function or isinstance(variable.owner, ast.Module):
        return root.id + rest if _is_set_before(variable, spot, flow) else ""
    behind = [*flow.behind(Value(root))]
    if any(each.path for each in behind):
        return ""
    found = {_here(each.node, spot, flow, depth + 1) for each in behind}
    written = found.pop() if len(found) == 1 else ""
    return "" if not written or (rest and written.isdigit()) else written + rest


def _has_attribute(number: ast.expr, spot: Spot, flow: Flow) -> bool:
    """Whether `self` is the same object, and has what is asked for before a line."""
    function = spot.site.function
    here, there = flow.places.get(spot.site.node), flow.places.get(number)
    if here is None or there is None or here.owner is None or there.owner is None:
        return False
    if flow.program.family(here.owner) is not flow.program.family(there.owner):
        return False
    while isinstance(number, (ast.Attribute, ast.Subscript)):
        if isinstance(number, ast.Attribute) and getattr(number.value, "id", "") == "self":
            break
        number = number.value
    variable = flow.variable(number, there)
    made = [] if variable is None else flow.definitions.get(variable, [])
    own = [each for each in made if flow.places[each.statement].function is function]
    if own:
        return min(each.statement.lineno for each in own) < spot.line
    return not made or getattr(function, "name", "") != "__init__"


def _is_set_before(variable: Variable, spot: Spot, flow: Flow) -> bool:
    """Whether a name has its value before a line."""
    if flow.is_parameter(variable):
        return True
    made = flow.definitions.get(variable, [])
    if not made:
        return False
    is_here = variable.owner is spot.site.function or spot.site.function is None
    if is_here:
        return all(each.statement.lineno < spot.line for each in made)
    return len(made) == 1


def _ready(
    made: MadeOptimizer, every: Sequence[MadeOptimizer], training: TrainingScript, flow: Flow
) -> ast.stmt:
    """The statement behind which the model and the optimizer stay what they are.

    Until there they may be moved, wrapped or given to `accelerator.prepare`. A schedule is made of
    an optimizer that is there, though not each way through the conditions before makes it.
    """
    chain = made.site.statements
    names = {*made.models, ast.unparse(made.optimizer)}
    trains = {
        s for step in training.steps for way in step.ways for p in way.sites for s in p.statements
    }
    ready: ast.stmt = made.statement
    makes = {each.statement for each in every}
    is_certain = True
    for depth in range(len(chain) - 1, -1, -1):
        is_certain &= depth == len(chain) - 1 or _makes_always(chain[depth], makes)
        owner = chain[depth - 1] if depth else made.site.function
        if owner is None:
            block = _module_body(made.site, training)
        else:
            block = block_with(owner, chain[depth]) or [chain[depth]]
        for following in block[block.index(chain[depth]) + 1 :]:
            if following in trains:
                break
            is_bound = is_certain or not isinstance(following, ast.If)
            if (changes if is_certain else makes_schedule_of)(following, names, flow) and is_bound:
                ready = following
    return ready


def _makes_always(statement: ast.stmt, makes: Container[ast.stmt]) -> bool:
    """Whether each way through a condition makes the optimizer, or ends the function."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return True
    if not isinstance(statement, ast.If):
        return statement in makes
    return all(
        any(isinstance(each, (ast.Raise, ast.Return)) or _makes_always(each, makes) for each in arm)
        for arm in (statement.body, statement.orelse)
    )


def _module_body(site: Site, training: TrainingScript) -> Sequence[ast.stmt]:
    """The statements of the module with a call."""
    program = training.sites.program
    return program.body_of(program.module_at(site.scope))


def _module_of(site: Site, training: TrainingScript) -> ast.Module:
    return training.sites.program.module_at(site.scope).tree
