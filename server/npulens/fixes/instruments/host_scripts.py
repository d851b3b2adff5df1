"""Scripts that compute on the host alone, where autocast of a device has no effect."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from npulens.syntax.bindings import Function
from npulens.syntax.by_node import once_by_node
from npulens.syntax.scopes import definitions_around
from npulens.syntax.values import dotted_name, last_name
from npulens.syntax.walking import is_main_guard, nodes_below
from npulens.training.flow import Flow
from npulens.training.loss_regions import LossRegion
from npulens.training.program import Program

_DEVICES = re.compile(
    r"cuda|dataparallel|(?<![a-z])npu|gpu|accelerator|accelerate\b|fabric|deepspeed|xpu|\bmps\b|\brank"
)
_NO_MOVES = frozenset(
    {"manual_seed", "manual_seed_all", "is_available", "empty_cache", "synchronize"}
    | {"device_count", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats"}
)
"""Functions of `torch.cuda` that move nothing to a card."""
_SETTINGS = re.compile(
    r"(?i)self|.*(?:args|arg|conf|config|cfg|opts?|options|params|settings|flags)|hp|hps|a|c|h"
)
"""What settings are called, which have a device that is chosen by the user."""
_WEIGHTS = frozenset({"weight", "bias"})
_TENSORS = frozenset({"tensor", "Tensor", "FloatTensor", "as_tensor", "from_numpy"})
_HOSTS = ("torch.device('cpu')", "'cpu'")
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


def moves_to_host_alone(tree: ast.Module, flow: Flow) -> bool:
    """Whether all that a script moves goes to the host: `device = torch.device("cpu")`."""
    moves = [n for n in nodes_below(tree) if isinstance(n, ast.Call) and _is_move(n)]
    targets = [_target(each) for each in moves]
    return bool(targets) and all(each is not None and _is_of_host(each, flow) for each in targets)


def _is_move(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "npu")


def _target(call: ast.Call) -> ast.expr | None:
    """The device that `.to(device)` is given."""
    given = [each.value for each in call.keywords if each.arg == "device"]
    return next(iter((*call.args, *given)), None) if last_name(call.func) == "to" else None


def _is_of_host(node: ast.expr, flow: Flow) -> bool:
    made = flow.origins(node)
    return bool(made) and all(not v.path and ast.unparse(v.node) in _HOSTS for v in made)


def stays_on_host(
    program: Program, above: Sequence[Program], regions: Sequence[LossRegion]
) -> bool:
    """Whether a script that is started, or what starts it, names no device but the host.

    Args:
        program: The script with what it imports.
        above: The programs that import the script: they may move what they give it.
        regions: The statements that compute losses.
    """
    start = program.start.tree
    larger = [each for each in above if any(m.tree is start for m in each.modules)]
    if not larger and not _is_started(start) and not all(map(_is_given_nothing, regions)):
        return False
    modules = {id(m.tree): m for each in (program, *larger) for m in each.modules}
    return not any(_names_device(module.tree) for module in modules.values())


def _is_given_nothing(region: LossRegion) -> bool:
    """Whether no function around some statements has parameters, as a test without fixtures."""
    around = [d for d in definitions_around(region.scope) if isinstance(d, Function)]
    return bool(around) and not any(
        [*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs] for each in around
    )


def _is_started(tree: ast.Module) -> bool:
    """Whether a file does something itself, and does not only define what others use."""
    return any(
        is_main_guard(each)
        or isinstance(each, (ast.For, ast.While, ast.With))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
        for each in tree.body
    )


def takes_of_host(
    program: Program, region: LossRegion, is_model: Callable[[ast.Call], bool]
) -> bool:
    """Whether a script that names no device gives tensors that it makes to its models.

    Files that it imports may be for devices, as those of other models are.

    Args:
        program: The script with what it imports.
        region: The statements that compute a loss.
        is_model: Whether a call is one of a model; another may move what it is given.
    """
    if _names_device(program.start.tree) or any(_sets_default(m.tree) for m in program.modules):
        return False
    if any(_moves_in_forward(module.tree) for module in program.modules):
        return False
    around = definitions_around(region.scope)
    function = next((each for each in around if isinstance(each, Function)), program.start.tree)
    direct: dict[str, list[bool]] = {}
    for node in nodes_below(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            direct.setdefault(node.targets[0].id, []).append(_makes_tensor(node.value))
    read = {
        argument.id
        for statement in region.statements
        for node in nodes_below(statement)
        if isinstance(node, ast.Call) and is_model(node)
        for argument in node.args
        if isinstance(argument, ast.Name)
    }
    return any(all(direct[name]) for name in read & direct.keys())


def _makes_tensor(value: ast.expr) -> bool:
    """`torch.tensor(...).view(-1, 1)`, of data of the host."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if last_name(value.func.value) == "torch" and value.func.attr in _TENSORS:
            # A number may stay on the host.
            return bool(value.args) and not isinstance(value.args[0], ast.Constant)
        value = value.func.value
    return False


@once_by_node
def _sets_default(tree: ast.Module) -> bool:
    return any(last_name(n.func) in _DEFAULTS for n in nodes_below(tree) if isinstance(n, ast.Call))


@once_by_node
def _moves_in_forward(tree: ast.Module) -> bool:
    """Whether a model moves what it is given."""
    passes = (n for n in nodes_below(tree) if isinstance(n, Function) and n.name == "forward")
    return any(_names_device(each) for each in passes)


@once_by_node
def _names_device(tree: ast.AST) -> bool:
    left_out, assigned = set(_without_moves(tree)), _assigned(tree)
    for node in nodes_below(tree):
        named = _named(node) if id(node) not in left_out else ""
        if _DEVICES.search(named) or ("device" in named and not _is_host(node, assigned)):
            return True
    return False


def _assigned(tree: ast.AST) -> Mapping[str, Sequence[ast.expr]]:
    """The values that names are given."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes_below(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def _without_moves(tree: ast.AST) -> Iterable[int]:
    """The nodes that name a device, or ask for one, and move nothing to a card."""
    for node in nodes_below(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        elif isinstance(node, ast.Call):
            name = dotted_name(node.func)
            path = () if name is None or name.root != "torch" else name.path
            is_of_cards = len(path) == 2 and path[0] == "cuda" and path[1] in _NO_MOVES
            is_of_host = path == ("device",) and node.args and _is_host_word(node.args[0])
            if is_of_cards or is_of_host:
                yield from (id(part) for part in nodes_below(node))
        elif isinstance(node, ast.Attribute) and node.attr == "device" and _is_tensor(node.value):
            yield id(node)


def _is_tensor(node: ast.expr) -> bool:
    """Whether `.device` is asked of a tensor: what has one by its settings stores it elsewhere."""
    if isinstance(node, ast.Name):
        return _SETTINGS.fullmatch(node.id) is None
    return last_name(node) in _WEIGHTS or "parameters(" in ast.unparse(node)


def _named(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value.lower() if isinstance(node.value, str) else ""
    return str(getattr(node, "attr", getattr(node, "id", getattr(node, "arg", "")))).lower()


def _is_host(node: ast.AST, assigned: Mapping[str, Sequence[ast.expr]]) -> bool:
    """Whether a name of a device is always that of the host."""
    if isinstance(node, (ast.Constant, ast.keyword)):
        return True
    if not isinstance(node, ast.Name):
        return False
    values = assigned.get(node.id, ())
    return bool(values) and all(ast.unparse(value) in _HOSTS for value in values)


def _is_host_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"
