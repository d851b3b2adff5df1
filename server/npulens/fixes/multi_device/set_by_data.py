"""What modules set from the data that they are given, outside of any optimizer.

Such is a scale that is taken from the first batch, or a codebook that follows what it encodes. A
wrapper averages gradients and nothing else, so each process would get its own.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from npulens.fixes.multi_device.reading import Reading, is_own, last_name
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below, parents_below

_Setting = ast.Assign | ast.AugAssign | ast.Expr
_ABOUT = frozenset({"shape", "size", "device", "dtype", "ndim", "dim", "numel", "len", "type"})
"""What is asked of data and is alike in all processes."""


class SetByData(NamedTuple):
    """A statement that sets a tensor of a module, and how the tensor is written."""

    statement: ast.stmt
    tensor: str


def set_by_data(reading: Reading) -> Iterator[SetByData]:
    """The statements behind which a tensor differs between processes.

    Raises:
        UnclearError: Whether one is run depends on data, so processes would wait in vain.
    """
    for owner in _modules(reading):
        kept = _kept(reading, owner)
        for method in _run_by_forward(reading, owner):
            setting = [*_setting(method, kept)]
            if not setting:
                continue
            own, parents = _from_data(method), parents_below(method)
            for statement, tensor in setting:
                if not _mentions(statement.value, own):
                    continue
                if _decided_by_data(statement, parents, own):
                    code = ast.unparse(statement).partition("\n")[0]
                    raise reading.unclear(statement, "distributed.set-by-chance", code=code)
                yield SetByData(statement, tensor)


def _modules(reading: Reading) -> Iterator[ast.ClassDef]:
    for module in reading.program.modules:
        for node in nodes_below(module.tree):
            if not isinstance(node, ast.ClassDef) or not reading.flow.is_module(node):
                continue
            if reading.flow.is_made(node):
                yield node


def _kept(reading: Reading, owner: ast.ClassDef) -> set[str]:
    """The attributes of a module that hold parameters; buffers may belong to the samples."""
    found: set[str] = set()
    for node in (part for each in reading.program.bases(owner) for part in nodes_below(each)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if last_name(node.value.func) == "Parameter":
            found |= {t.attr for t in node.targets if isinstance(t, ast.Attribute)}
    return found


def _run_by_forward(reading: Reading, owner: ast.ClassDef) -> Iterator[Function]:
    """`forward` of a class and the methods of its own that it calls."""
    pending, known = ["forward"], set[str]()
    while pending:
        name = pending.pop()
        method = reading.program.method(owner, name)
        if name in known or method is None:
            continue
        known.add(name)
        if method in owner.body:
            yield method
        calls = (node for node in nodes_below(method) if isinstance(node, ast.Call))
        pending += (last_name(each.func) for each in calls if is_own(each.func))


def _from_data(method: Function) -> set[str]:
    """The names in a method that depend on what it is given."""
    arguments = method.args
    given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    own = {each.arg for each in given} - {"self"}
    assigned = [
        n for n in nodes_below(method) if isinstance(n, (ast.Assign, ast.AugAssign, ast.For))
    ]
    for _ in range(4):
        before = len(own)
        for node in assigned:
            if not _mentions(node.iter if isinstance(node, ast.For) else node.value, own):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                own |= {n.id for n in nodes_below(target) if _is_stored(n)}  # type: ignore[attr-defined]
        if len(own) == before:
            break
    return own


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether a node reads the data behind some names, and not only its shape."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Call) and each.args and last_name(each.func) == "type":
            pending += ast.iter_child_nodes(each.func)  # `x.type(t)` is data, `x.type()` a name
            continue
        if isinstance(each, ast.Attribute) and each.attr in _ABOUT:
            continue
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") in _ABOUT:
            continue
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], (ast.Is, ast.IsNot)):
            continue
        if isinstance(each, ast.Name) and each.id in names:
            return True
        pending += ast.iter_child_nodes(each)
    return False


def _setting(method: Function, kept: set[str]) -> Iterator[tuple[_Setting, str]]:
    """The statements that set a tensor of a module, each with the tensor."""
    for statement in nodes_below(method):
        if isinstance(statement, _Setting):
            tensor = _tensor_set(statement, kept)
            if tensor is not None:
                yield statement, tensor


def _tensor_set(statement: _Setting, kept: set[str]) -> str | None:
    """The tensor of a module that a statement sets, without `.data` and indices."""
    if isinstance(statement, ast.Expr):
        node = statement.value
        found = None
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
                found = node.func.value
            node = node.func.value
        return None if found is None else _tensor(node, kept)
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        if (tensor := _tensor(target, kept)) is not None:
            return tensor
    return None


def _tensor(node: ast.expr, kept: set[str]) -> str | None:
    is_data = False
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif node.attr == "data":
            is_data, node = True, node.value
        else:
            break
    first: ast.expr = node
    while isinstance(first, ast.Attribute) and not is_own(first):
        first = first.value
    if not isinstance(first, ast.Attribute) or not isinstance(node, ast.Attribute):
        return None
    is_tensor = is_data or (first is node and node.attr in kept)
    return ast.unparse(node) if is_tensor or (first is not node and node.attr == "weight") else None


def _decided_by_data(statement: ast.AST, parents: dict[ast.AST, ast.AST], own: set[str]) -> bool:
    """Whether a statement stands in a branch or a loop that data decides on."""
    node = statement
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.If, ast.While)) and _mentions(node.test, own):
            return True
        if isinstance(node, ast.For) and _mentions(node.iter, own):
            return True
    return False
