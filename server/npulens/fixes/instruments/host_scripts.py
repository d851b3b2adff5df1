"""Scripts that compute on the host alone, where autocast of a device has no effect."""

import ast
import re

from npulens.syntax.bindings import Function
from npulens.syntax.scopes import definitions_around
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.training.loss_regions import LossRegion
from npulens.training.program import Program

_DEVICES = re.compile(r"cuda|npu|gpu|accelerat|fabric|deepspeed|xpu|\bmps\b|\brank")
_TENSORS = frozenset({"tensor", "Tensor", "FloatTensor", "as_tensor", "from_numpy"})
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


def stays_on_host(program: Program) -> bool:
    """Whether no file of a program names a device but the host."""
    return not any(_names_device(module.tree) for module in program.modules)


def takes_of_host(program: Program, region: LossRegion) -> bool:
    """Whether a script that names no device gives tensors that it makes to its models.

    Files that it imports may be for devices, as those of other models are.
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
        node.id
        for statement in region.statements
        for node in nodes_below(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return any(all(direct[name]) for name in read & direct.keys())


def _makes_tensor(value: ast.expr) -> bool:
    """`torch.tensor(...).view(-1, 1)`, of data of the host."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if last_name(value.func.value) == "torch" and value.func.attr in _TENSORS:
            return True
        value = value.func.value
    return False


def _sets_default(tree: ast.Module) -> bool:
    return any(last_name(n.func) in _DEFAULTS for n in nodes_below(tree) if isinstance(n, ast.Call))


def _moves_in_forward(tree: ast.Module) -> bool:
    """Whether a model moves what it is given."""
    passes = (n for n in nodes_below(tree) if isinstance(n, Function) and n.name == "forward")
    return any(_names_device(each) for each in passes)


def _names_device(tree: ast.AST) -> bool:
    host = {
        id(part)
        for node in nodes_below(tree)
        if isinstance(node, ast.Call) and ast.unparse(node) == "torch.device('cpu')"
        for part in nodes_below(node)
    }
    for node in nodes_below(tree):
        named = _named(node) if id(node) not in host else ""
        if _DEVICES.search(named) or ("device" in named and not _is_host(node, tree)):
            return True
    return False


def _named(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return str(getattr(node, "attr", getattr(node, "id", getattr(node, "arg", "")))).lower()


def _is_host(node: ast.AST, tree: ast.AST) -> bool:
    """Whether a name of a device is always that of the host."""
    if isinstance(node, (ast.Constant, ast.keyword)):
        return True
    if not isinstance(node, ast.Name):
        return False
    values = [
        each.value
        for each in nodes_below(tree)
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id
    ]
    hosts = ("torch.device('cpu')", "'cpu'")
    return bool(values) and all(ast.unparse(value) in hosts for value in values)
