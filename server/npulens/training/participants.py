"""What takes part in the steps of a script: loaders, optimizers, and the models that they train."""

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.walking import choices, nodes_below
from npulens.training.flow import Flow, Value, Variable
from npulens.training.node_places import Loop
from npulens.training.step_loops import StepLoop
from npulens.training.training_script import TrainingScript
from npulens.training.updates import Update

LOADERS = frozenset(
    {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
    | {"torch_geometric.loader.DataLoader", "torch_geometric.data.DataLoader"}
    | {"torch_geometric.loader.dataloader.DataLoader", "monai.data.DataLoader"}
)
_PARAMETERS = frozenset({"parameters", "named_parameters", "trainable_parameters"})
_PARTS = frozenset({"modules", "named_modules", "children", "named_children"})
"""Methods of a model that give its parts."""
_MOST_STEPS = 200


class Source(NamedTuple):
    """What feeds a loop of steps.

    Attributes:
        used: The expression in the loop: what it iterates over, or what `next` is given.
        made: What makes the data, by the file.
    """

    used: ast.expr
    made: tuple[Value, ...]


def is_loader(node: ast.expr, flow: Flow) -> bool:
    """Whether an expression makes a `DataLoader`, or an object of a class derived from it."""
    if not isinstance(node, ast.Call) or node not in flow.places:
        return False
    if not LOADERS.isdisjoint(qualified_names(node.func, flow.places[node].scope)):
        return True
    program = flow.program
    return any(
        not LOADERS.isdisjoint(qualified_names(base, program.module_with[each].scope))
        for made in flow.classes_made(node)
        for each in program.bases(made)
        for base in each.bases
    )


def sources(step: StepLoop, flow: Flow) -> Iterator[Source]:
    """What a loop of steps takes its data from."""
    loop = step.loop
    used = [] if isinstance(loop, ast.While) else [loop.iter]
    for function in _run_in(loop, flow):
        used += (each for node in nodes_below(function) if (each := _taken(node)) is not None)
    for node in (part for statement in loop.body for part in nodes_below(statement)):
        if (taken := _taken(node)) is not None:
            used.append(taken)
        elif isinstance(node, (ast.For, ast.AsyncFor)) and node is not loop:
            used.append(node.iter)
    for each in used:
        yield Source(each, tuple(_unrolled(flow, each)))


def _taken(node: ast.AST) -> ast.expr | None:
    """The iterator of which `next` takes an element."""
    if not isinstance(node, ast.Call) or _last(node.func) not in ("next", "__next__"):
        return None
    if node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _run_in(loop: Loop, flow: Flow) -> list[Function]:
    """The functions that the turns of a loop run."""
    found: dict[Function, None] = {}
    pending: list[ast.AST] = [*loop.body]
    while pending:
        for node in nodes_below(pending.pop()):
            run = flow.functions_run(node) if isinstance(node, ast.Call) else ()
            new = [function for function in run if function not in found]
            found.update(dict.fromkeys(new))
            pending += new
    return list(found)


def _unrolled(flow: Flow, node: ast.expr) -> Iterator[Value]:
    """The origins of what is iterated over; what a generator of the file loops over among them."""
    for value in flow.origins(node):
        yield value
        place = flow.places.get(value.node)
        if place is not None and place.loops and isinstance(value.node, ast.Name):
            loop = place.loops[-1]
            if not isinstance(loop, ast.While):
                yield from flow.origins(loop.iter)


def models_of(update: Update, flow: Flow) -> list[ast.expr]:
    """The expressions whose parameters the optimizer of an update is given."""
    found: dict[ast.expr, None] = {}
    for value in flow.origins(update.optimizer):
        found.update(dict.fromkeys(owners_of_parameters(value.node, flow)))
    return list(found)


def without_model(update: Update, flow: Flow) -> ast.expr | None:
    """What the optimizer of an update is given that is no `.parameters()` of a model, if any."""
    made = [value.node for value in flow.origins(update.optimizer)]
    pending = [n.args[0] for n in made if isinstance(n, ast.Call) and _is_of_torch(n, flow)]
    models = {held for each in models_of(update, flow) for held in holders(each, flow)}
    known: set[ast.expr] = set()
    while pending and len(known) < _MOST_STEPS:
        node = pending.pop()
        if node in known:
            continue
        known.add(node)
        parts = _groups(node, flow)
        pending += parts
        if not parts and not isinstance(node, (ast.List, ast.Tuple)):
            if any(owners_of_parameters(node, flow)):
                continue
            if models.isdisjoint(holders(node, flow)):
                return node
    return None


def _is_of_torch(call: ast.Call, flow: Flow) -> bool:
    """Whether a call makes an optimizer of PyTorch, with its parameters as the first argument."""
    names = qualified_names(call.func, flow.places[call].scope) if call in flow.places else []
    return bool(call.args) and any(".optim" in name for name in names)


def _groups(node: ast.expr, flow: Flow) -> list[ast.expr]:
    """The parts of what an optimizer is given."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [v for k, v in pairs if getattr(k, "value", None) == "params"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and _last(node.func) in ("list", "tuple", "chain"):
        return [each for each in node.args if not isinstance(each, ast.Starred)]
    if isinstance(node, ast.Name):
        variable = flow.variable(node)
        made = flow.definitions.get(variable, ()) if variable is not None else ()
        lists = [d.value.node for d in made if isinstance(d.value.node, (ast.List, ast.BinOp))]
        if len(lists) == len(made) and not any(d.value.path for d in made):
            return [*lists, *(e for e in _appended(flow, node) if isinstance(e, ast.Dict))]
    return []


def trained_models(script: TrainingScript, flow: Flow) -> list[ast.expr]:
    """The expressions whose parameters optimizers are given, in the order of the source."""
    found = dict.fromkeys(node for each in script.updates for node in models_of(each, flow))
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def owners_of_parameters(optimizer: ast.expr, flow: Flow) -> Iterator[ast.expr]:
    """What `.parameters()` is called of in what makes an optimizer, and in what that is given."""
    for node in parts_of(optimizer, flow):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _PARAMETERS:
            yield _whole(function.value, flow)


def _whole(node: ast.expr, flow: Flow) -> ast.expr:
    """`model`, where a loop over `model.named_modules()` asks each part for its parameters."""
    variable = flow.variable(node) if isinstance(node, ast.Name) else None
    made = [] if variable is None else flow.definitions.get(variable, [])
    loops = [each.statement for each in made]
    if len(loops) != 1 or not isinstance(loops[0], (ast.For, ast.AsyncFor)):
        return node
    called = getattr(loops[0].iter, "func", None)
    is_of_parts = isinstance(called, ast.Attribute) and called.attr in _PARTS
    return called.value if is_of_parts and isinstance(called, ast.Attribute) else node


def takes_from_set(optimizer: ast.expr, flow: Flow) -> bool:
    """Whether what an optimizer is given goes through a set, whose order is that of no process."""
    return any(
        isinstance(node, (ast.Set, ast.SetComp))
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset"))
        for node in parts_of(optimizer, flow)
    )


def parts_of(optimizer: ast.expr, flow: Flow) -> Iterator[ast.AST]:
    """The nodes of what makes an optimizer, and of what it is given."""
    pending: list[ast.AST] = [optimizer]
    known: set[ast.AST] = set()
    while pending and len(known) < _MOST_STEPS:
        top = pending.pop()
        if top in known:
            continue
        known.add(top)
        for node in nodes_below(top):
            yield node
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                behind = flow.behind(Value(node))
                pending += [each.node for each in behind if not _is_module_like(node)]
                pending += _appended(flow, node)


def _is_module_like(node: ast.Name) -> bool:
    return node.id in ("torch", "optim", "nn", "args", "self", "cfg", "config", "opt")


def _appended(flow: Flow, node: ast.Name) -> Iterator[ast.expr]:
    """What a list of parameters is filled with: `params += [...]`, `params.append(...)`."""
    variable = flow.variable(node)
    if variable is None or not _collects(node.id, variable, flow):
        return
    for added in flow.added.get(variable, ()):
        yield added.value
        loops = flow.places[added].loops
        yield from (loop.iter for loop in loops if not isinstance(loop, ast.While))
    for site, call in flow.sites.calls():
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in ("append", "extend"):
            continue
        if flow.variable(function.value) == variable:
            yield from call.args
            yield from (loop.iter for loop in site.loops if not isinstance(loop, ast.While))


def _collects(name: str, variable: Variable, flow: Flow) -> bool:
    """Whether a variable is a list that is filled: by its name, or as it is empty at first."""
    if "param" in name.lower() or "group" in name.lower():
        return True
    values = (each.value.node for each in flow.definitions.get(variable, ()))
    chosen = (each for value in values for each in choices(value))
    return any(isinstance(each, ast.List) and not each.elts for each in chosen)


def base_of(node: ast.expr, flow: Flow) -> ast.expr:
    """The model that a part belongs to: `self.net` of `self.net.encoder`."""
    while True:
        if isinstance(node, ast.Subscript) or _is_part(node, flow):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def _is_part(node: ast.expr, flow: Flow) -> TypeGuard[ast.Attribute]:
    """Whether an attribute is a part of a model and no variable of an object that trains it."""
    if not isinstance(node, ast.Attribute):
        return False
    variable = flow.variable(node)
    if variable is None:
        return True
    return isinstance(variable.owner, ast.ClassDef) and flow.is_module(variable.owner)


def _as_called(node: ast.expr, flow: Flow) -> list[ast.expr]:
    """What `self` is in a method, where the method is called."""
    place = flow.places.get(node)
    if getattr(node, "id", "") != "self" or place is None or place.function is None:
        return [node]
    found = flow.receivers(place.function)
    made = flow.calls_of(place.function) if place.function.name == "__init__" else []
    return [*found, *(site.node for site in made)] or [node]


def holders(node: ast.expr, flow: Flow) -> list[Variable]:
    """The variables that hold what an expression is, and that no parameter of the file brings."""
    found: dict[Variable, None] = {}
    pending, known = [base_of(node, flow)], set()
    selves: set[ast.expr] = set()
    while pending:
        each = pending.pop()
        if each not in selves and (called := _as_called(each, flow)) != [each]:
            selves.add(each)
            pending += [base_of(e, flow) for e in called if not isinstance(e, ast.Call)]
            continue
        variable = flow.variable(each)
        if variable is None or variable in known:
            continue
        known.add(variable)
        definitions = flow.definitions.get(variable, [])
        passed = [
            d.value.node
            for d in definitions
            if not d.value.path and isinstance(d.value.node, (ast.Name, ast.Attribute))
        ]
        given = flow.given(variable) if flow.is_parameter(variable) else []
        above = [e for e in (*passed, *given) if flow.variable(base_of(e, flow)) is not None]
        if above and len(passed) + len(given) >= len(above):
            pending += [base_of(e, flow) for e in above]
        if not above or len(definitions) > len(passed):
            found[variable] = None
    return list(found)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
