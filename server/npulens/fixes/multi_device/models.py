"""Which models of a script are wrapped, and where.

A model is wrapped as late as possible: before the statement that trains it or that hands it to
something which keeps it. What is made of it before, such as optimizers and averages, and what is
loaded into it, then need no change.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from npulens.fixes.distributed import DATA_PARALLEL
from npulens.fixes.multi_device.plan import Insertion, Wrapping
from npulens.fixes.multi_device.reading import Reading, last_name, start_of, starts_before
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.walking import is_main_guard, nodes_below
from npulens.training.flow import RETURN_ITSELF, Value, Variable
from npulens.training.participants import (
    base_of,
    holders,
    models_of,
    trained_models,
    without_model,
)

_KEEPS_NOTHING = re.compile(
    r"optim|sched|ema|averag|deepcopy|summary|flops|param|size|count|watch|scaler|info|clip|save|load"
    r"|print|isinstance|len|next|list|sum|profile|DataParallel|init|compile|adam|sgd|initialize|swa",
    re.IGNORECASE,
)
"""Calls that are given a model and do not train it; what they return needs none that is wrapped."""

_CHANGING = frozenset({"apply", "to", "cuda", "npu"})
_PLAIN = re.compile(r"without|inner|raw|plain|unwrapped|best|old|prev", re.IGNORECASE)
"""Names of variables for the model without its wrapper."""


class _MethodCall(ast.Call):
    """A call of a method."""

    func: ast.Attribute


class Trained(NamedTuple):
    """A variable whose model is trained, and the expression that says so."""

    variable: Variable
    seen: ast.expr


def trained_variables(reading: Reading, wanted: str | None) -> list[Trained]:
    """The variables that hold the models which optimizers are given.

    Raises:
        UnclearError: None is found, or not the one that is asked for.
    """
    flow = reading.flow
    found: dict[Variable, ast.expr] = {}
    for update in reading.training.updates:
        if wanted is None and not models_of(update, flow):
            raise reading.unclear(update.site.node, "distributed.no-trained-model")
        if wanted is None and (other := without_model(update, flow)) is not None:
            raise reading.unclear(other, "distributed.not-held", code=reading.source(other))
    for node in trained_models(reading.training, flow):
        held = holders(node, flow)
        if not held:
            code = reading.source(base_of(node, flow))
            raise reading.unclear(node, "distributed.not-held", code=code)
        for variable in held:
            found.setdefault(variable, node)
    if wanted is not None:
        named = [_named(reading, name.strip(), found) for name in wanted.split(",")]
        for variable, node in found.items():
            if all(variable != each.variable for each in named):
                code = variable.name
                raise reading.unclear(node, "distributed.second-model", code=code)
        return named
    if not found:
        raise UnclearError(1, "distributed.no-trained-model")
    return [Trained(variable, node) for variable, node in found.items()]


def _named(reading: Reading, name: str, found: dict[Variable, ast.expr]) -> Trained:
    """The variable of a name: one that is trained, or one that is assigned.

    Raises:
        UnclearError: There is none.
    """
    for variable, seen in found.items():
        if variable.name == name:
            return Trained(variable, seen)
    for variable, definitions in reading.flow.definitions.items():
        if variable.name == name.removeprefix("self."):
            return Trained(variable, definitions[0].value.node)
    first = next(iter(found.values()), reading.script.tree)
    raise reading.unclear(first, "distributed.no-variable", model=name)


def wrapping_of(reading: Reading, trained: Trained) -> Wrapping:
    """Where a model is wrapped.

    Raises:
        UnclearError: There is no place for it.
    """
    variable, seen = trained
    made = _made(reading, trained)
    function = reading.place(made[-1]).function
    others = [s for s in made if reading.place(s).function is not function]
    if others:
        raise reading.unclear(others[0], "distributed.several-functions", model=variable.name)
    text = as_assigned(reading, variable, made)
    leads = sorted(_leads(reading, variable, function, made), key=start_of)
    if not leads:
        if not isinstance(variable.owner, ast.ClassDef) or function is None:
            raise reading.unclear(seen, "distributed.never-trained", model=variable.name)
        last = function.body[-1]
        at = Insertion(last, not isinstance(last, ast.Return))
    else:
        at = Insertion(_statement_for(reading, leads[0], made))
        late = [s for s in made if starts_before(at.statement, s)]
        if late:
            raise reading.unclear(
                at.statement,
                "distributed.trains-before",
                model=variable.name,
                line=late[-1].lineno,
            )
    return Wrapping(variable, text, at, function, _passes(reading, variable) > 1)


def as_assigned(reading: Reading, variable: Variable, made: Iterable[ast.stmt]) -> str:
    """How a variable is written where it is assigned: `model`, `self.model`, `trainer.model`."""
    nodes = (node for statement in made for node in nodes_below(statement))
    targets = (n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and not _is_read(n))
    here = (ast.unparse(each) for each in targets if reading.flow.variable(each) == variable)
    is_own = isinstance(variable.owner, ast.ClassDef)
    return next(here, f"self.{variable.name}" if is_own else variable.name)


def _made(reading: Reading, trained: Trained) -> list[ast.stmt]:
    """The statements that make a model, or that move it."""
    variable, seen = trained
    definitions = [
        d
        for d in reading.flow.definitions.get(variable, ())
        if not isinstance(d.value.node, ast.Constant) and not _is_switched(d.value.node)
    ]
    if not definitions:
        raise reading.unclear(seen, "distributed.not-made", model=variable.name)
    for each in definitions:
        if not isinstance(each.value.node, (ast.Call, ast.Name, ast.Attribute, ast.IfExp)):
            raise reading.unclear(
                each.statement, "distributed.not-made-by-call", model=variable.name
            )
    made = [each.statement for each in definitions]
    functions = {reading.place(each).function for each in made}
    for node, place in reading.flow.places.items():
        # What changes its parts: `model.fc = nn.Linear(...)`, `model.apply(...)`
        if place.function not in functions or not isinstance(node, ast.stmt):
            continue
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Attribute)
            and reading.flow.variable(t) is None
            and reading.flow.variable(base_of(t, reading.flow)) == variable
            for t in node.targets
        ):
            made.append(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value.func
            changes = isinstance(call, ast.Attribute) and call.attr in _CHANGING
            if changes and reading.flow.variable(call.value) == variable:  # type: ignore[attr-defined]
                made.append(node)
    return sorted(made, key=lambda s: (s.lineno, s.col_offset))


def _is_switched(node: ast.expr) -> bool:
    """`model.train()`, which makes nothing."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("train", "eval")


def _leads(
    reading: Reading, variable: Variable, function: Function | None, made: list[ast.stmt]
) -> Iterator[ast.AST]:
    """The nodes of the function that makes a model which train it or keep it for training."""
    for step in reading.training.steps:
        for way in step.ways:
            for site in way.sites:
                if site.function is function and site.node.lineno:
                    yield step.loop if step.loop in site.loops else site.node
    for node, place in reading.flow.places.items():
        if place.function is not function or not _is_read(node):
            continue
        if reading.flow.variable(node) != variable:  # type: ignore[arg-type]
            continue
        parent = reading.parents[node]
        statement = place.statements[-1]
        if isinstance(parent, ast.keyword):
            parent = reading.parents[parent]
        if _hands_on(reading, parent, node, statement) or (
            isinstance(parent, ast.Call)
            and parent.func is not node
            and statement not in made
            and (last_name(parent.func) == "DataParallel" or _keeps(reading, parent))
        ):
            yield node


def _hands_on(reading: Reading, parent: ast.AST, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a model is returned, gets another name, or is put into something."""
    if isinstance(parent, ast.Return) or _is_alias(parent, node, statement):
        return True
    is_part = isinstance(parent, (ast.Dict, ast.Tuple, ast.List))
    is_kept = isinstance(statement, (ast.Assign, ast.Return))
    return is_part and is_kept and not _is_in_call(reading, parent, statement)


def _is_in_call(reading: Reading, node: ast.AST, statement: ast.stmt) -> bool:
    while node is not statement:
        node = reading.parents[node]
        if isinstance(node, ast.Call):
            return True
    return False


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)


def _is_alias(parent: ast.AST, node: ast.AST, statement: ast.stmt) -> bool:
    if parent is not statement or not isinstance(parent, ast.Assign) or parent.value is not node:
        return False
    return not any(_PLAIN.search(last_name(target)) for target in parent.targets)


def _keeps(reading: Reading, call: ast.Call) -> bool:
    """Whether a call may keep the model that it is given, and train it."""
    if reading.flow.class_made(call) is not None:
        return not _KEEPS_NOTHING.search(last_name(call.func))
    if reading.flow.functions_run(call):
        return False  # the ways to the loops lead through it, or it does not train
    if _KEEPS_NOTHING.search(last_name(call.func)):
        return False
    if any(
        name.startswith(("torch.optim", "copy.", "builtins")) for name in reading.names(call.func)
    ):
        return False
    parent = reading.parents[call]
    return isinstance(parent, (ast.Assign, ast.AnnAssign))


def _statement_for(reading: Reading, node: ast.AST, made: list[ast.stmt]) -> ast.stmt:
    """The outermost statement around a node behind all that makes the model."""
    chain = list(reading.place(node).statements)
    if isinstance(node, ast.stmt) and chain[-1] is not node:
        chain.append(node)
    for at, statement in enumerate(chain):
        holds_making = any(_contains(statement, each) for each in made)
        if at + 1 < len(chain) and (holds_making or is_main_guard(statement)):
            continue
        if reading.is_elif(statement) and at + 1 < len(chain):
            continue
        return statement
    return chain[-1]


def _contains(outer: ast.stmt, inner: ast.stmt) -> bool:
    return outer is not inner and any(each is inner for each in nodes_below(outer))


def _passes(reading: Reading, variable: Variable) -> int:
    """How many calls of a model stand in one loop of steps."""
    flow = reading.flow
    calls = 0
    for node, place in reading.calls():
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or not reading.trains_at(node):
            continue
        if flow.variable(node.func) is not None and _leads_to(reading, node.func, variable):
            inner = [loop for loop in place.loops if loop not in reading.step_loops]
            is_repeated = place.function in reading.run_in_steps and bool(place.loops)
            is_repeated |= bool(inner) and place.loops[-1] not in reading.step_loops
            calls += 2 if is_repeated else 1
    return calls


def _leads_to(reading: Reading, node: ast.expr, variable: Variable) -> bool:
    return variable in holders(node, reading.flow)


class Aliases:
    """The variables that hold wrapped models, each with whether it holds nothing else."""

    def __init__(self, reading: Reading, wrappings: list[Wrapping]) -> None:
        self._reading = reading
        self._at = {each.variable: each for each in wrappings}
        self.mixed: dict[Variable, ast.expr] = {}
        self.all: set[Variable] = set(self._at)
        while self._grow():
            pass

    def is_wrapped(self, node: ast.AST) -> bool:
        """Whether an expression holds a wrapped model where it stands."""
        if not _is_read(node) or node not in self._reading.flow.places:
            return False
        variable = self._reading.flow.variable(node)  # type: ignore[arg-type]
        if variable not in self.all:
            return False
        wrapping = self._at.get(variable)
        if wrapping is None or self._reading.place(node).function is not wrapping.function:
            return True
        if wrapping.at.behind:
            return False
        return not starts_before(node, wrapping.at.statement)

    def _grow(self) -> bool:
        before = len(self.all)
        flow = self._reading.flow
        for variable, definitions in list(flow.definitions.items()):
            if variable not in self.all and any(
                self._comes_from_wrapped(d.value.node, d.value.path) for d in definitions
            ):
                self.all.add(variable)
        for node, _ in self._reading.calls():
            given = [*node.args, *(k.value for k in node.keywords)]
            for argument in given:
                if self.is_wrapped(argument):
                    self.all.update(flow.parameter_of(node, argument))
        self._find_mixed()
        return len(self.all) > before

    def _find_mixed(self) -> None:
        for variable in self.all:
            if not self._reading.flow.is_parameter(variable):
                continue
            for given in self._reading.flow.given(variable):
                if not self.is_wrapped(given):
                    self.mixed[variable] = given
                    break
            else:
                self.mixed.pop(variable, None)

    def _comes_from_wrapped(self, node: ast.expr, path: tuple[str | int | None, ...]) -> bool:
        """What a call of the file returns, or a part of what is put together."""
        pending = [(node, path)]
        for _ in range(40):
            if not pending:
                return False
            each, its = pending.pop()
            if not its and self.is_wrapped(each):
                return True
            if isinstance(each, ast.Call) and not self._reading.flow.functions_run(each):
                if returns_itself(each) and not its:
                    pending.append((each.func.value, its))
                continue
            if isinstance(each, (ast.Name, ast.Attribute)) and not its:
                continue
            from_here = self._reading.flow.behind(Value(each, its))
            pending += [(value.node, value.path) for value in from_here]
        return False


def returns_itself(call: ast.Call) -> TypeGuard[_MethodCall]:
    """`model.to(device)`, which is `model`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in RETURN_ITSELF


def unwrapped_modules(reading: Reading, aliases: Aliases) -> Iterator[ast.Attribute]:
    """`model.module` where the model is not wrapped yet, now that `DataParallel` is gone."""
    for node in reading.flow.places:
        if isinstance(node, ast.Attribute) and node.attr == "module":
            is_model = reading.flow.variable(node.value) in aliases.all
            if is_model and not aliases.is_wrapped(node.value):
                yield node


def parallel_classes(
    reading: Reading, parallel: list[tuple[ast.Call, ast.expr]]
) -> Iterator[ast.expr]:
    """Where the class is named, as in `isinstance(model, nn.DataParallel)`."""
    called = {call.func for call, _ in parallel}
    for node in reading.flow.places:
        if (
            isinstance(node, (ast.Name, ast.Attribute))
            and _is_read(node)
            and node not in called
            and not DATA_PARALLEL.isdisjoint(reading.names(node))
        ):
            yield node


def parallel_calls(reading: Reading) -> list[tuple[ast.Call, ast.expr]]:
    """The calls of `DataParallel`, each with the model that it wraps.

    Raises:
        UnclearError: One is of a form that is not rewritten.
    """
    found: list[tuple[ast.Call, ast.expr]] = []
    for call, _ in reading.calls():
        if DATA_PARALLEL.isdisjoint(reading.names(call.func)):
            continue
        named = [k.value for k in call.keywords if k.arg == "module"]
        model = call.args[0] if call.args else next(iter(named), None)
        if model is None or isinstance(model, ast.Starred):
            raise reading.unclear(call, "distributed.form-of-wrapping")
        found.append((call, model))
    return found
