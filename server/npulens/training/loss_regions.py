"""The statements of a step that compute a loss: forward pass and criterion.

They are followed backwards from the call that goes backward, by the names that are read and
assigned, in the function with the call and, where the loss is a parameter, in its callers.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.graphs.interfaces import OF_MODULES
from npulens.syntax.bindings import Function
from npulens.syntax.by_node import once_by_node
from npulens.syntax.meanings import Qualified, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import Path, Site
from npulens.training.statement_blocks import block_with
from npulens.training.updates import Backward

_FILLING = frozenset({"update", "append", "extend", "setdefault"})
_BUILTINS = frozenset(dir(builtins))
_WITHOUT_MODELS = frozenset(
    {"torch", "torchvision", "numpy", "os", "time", "random", "math", "copy", "tqdm", "wandb"}
)
"""Libraries whose functions are no models and no criteria, but for `torch.nn.functional`."""
_NO_COMPUTATION = frozenset(
    {"to", "cuda", "npu", "cpu", "item", "size", "view", "reshape", "float", "long", "detach"}
    | {"numpy", "append", "update", "next", "get", "keys", "items", "train", "eval", "zero_grad"}
    | {"type", "half", "double", "int", "bool", "permute", "transpose", "pin_memory", "index_fill_"}
    | {"requires_grad_", "clone", "contiguous", "squeeze", "unsqueeze", "step", "format", "split"}
)
"""Methods that move data or ask for something, which needs no other precision."""


class LossRegion(NamedTuple):
    """Statements in a row, in one block.

    Attributes:
        scope: Where their names are looked up.
    """

    statements: tuple[ast.stmt, ...]
    scope: Scope


class UnclearLossError(Exception):
    """It is not clear which statements compute a loss.

    Attributes:
        line: Where, counted from 1.
    """

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def loss_region(backward: Backward, path: Path, barriers: frozenset[ast.expr]) -> LossRegion:
    """The statements that compute a loss, on a way to the call that goes backward.

    Args:
        backward: What goes backward.
        path: The way to the call.
        barriers: All calls that go backward or update weights: what comes before one of them
            belongs to another loss.

    Raises:
        UnclearLossError: They are not in one block before the call, compute nothing, or read
            what another method computes.
    """
    needed = names_read(backward.loss)
    for site in reversed(path.sites):
        found = _in_function(site, needed, barriers)
        if found is not None:
            return found
        if not needed & _parameters(site.function):
            break
        caller = _caller(path, site)
        if caller is None:
            break
        needed = names_read(caller.node)
    raise UnclearLossError(backward.site.node.lineno)


def _caller(path: Path, site: Site) -> Site | None:
    at = path.sites.index(site)
    return path.sites[at - 1] if at else None


def _in_function(
    site: Site, needed: frozenset[str], barriers: frozenset[ast.expr]
) -> LossRegion | None:
    """The statements before a call in its own function, innermost block first."""
    chain = site.statements
    wanted = set(needed)
    for depth in range(len(chain) - 1, -1, -1):
        owner = chain[depth - 1] if depth else site.function
        block = block_with(owner, chain[depth]) if owner is not None else None
        if block is None:
            return None
        before = block[: block.index(chain[depth])]
        found = _slice(before, wanted, site.scope, barriers)
        if found is not None:
            _require_begun(found, before, needed)
            _require_whole(found, wanted, site)
            return found
        if isinstance(owner, (ast.For, ast.AsyncFor, ast.While)) and owner in site.loops:
            return None
    return None


def _slice(
    before: Sequence[ast.stmt], wanted: set[str], scope: Scope, barriers: frozenset[ast.expr]
) -> LossRegion | None:
    """The statements from the first that computes to the last that assigns something wanted."""
    first = last = None
    for at in range(len(before) - 1, -1, -1):
        statement = before[at]
        if any(node in barriers for node in nodes_below(statement) if isinstance(node, ast.Call)):
            if last is None and isinstance(statement, ast.Expr):
                continue  # losses that are computed together, and go back one after the other
            break
        assigned = set(assigned_names(statement))
        written = assigned | set(_filled_names(statement))
        if not any(is_part(name, each) for name in wanted for each in written):
            continue
        wanted -= {n for n in wanted if n in assigned and not isinstance(statement, ast.If)}
        wanted |= names_read(statement)
        last = at if last is None else last
        first = at if computes(statement, scope) else first
    if first is None or last is None:
        return None
    return LossRegion(tuple(before[first : last + 1]), scope)


def _require_begun(found: LossRegion, before: Sequence[ast.stmt], needed: frozenset[str]) -> None:
    """See that a loss to which something is added was not computed above what goes backward."""
    parts = [node for statement in found.statements for node in nodes_below(statement)]
    added = {ast.unparse(n.target) for n in parts if isinstance(n, ast.AugAssign)} & needed
    made = {ast.unparse(t) for n in parts if isinstance(n, ast.Assign) for t in n.targets}
    if added <= made:
        return
    for statement in before[: before.index(found.statements[0])]:
        is_made = isinstance(statement, ast.Assign) and computes(statement, found.scope)
        if is_made and not (added - made).isdisjoint(assigned_names(statement)):
            raise UnclearLossError(statement.lineno)


def _require_whole(found: LossRegion, wanted: set[str], site: Site) -> None:
    """See that nothing of the loss is computed by a method that ran before."""
    if not any(name.startswith("self.") for name in wanted):
        return
    function = site.function
    owner = getattr(site.scope, "owner", None)
    methods = [] if owner is None else [m for m in owner.node.body if isinstance(m, Function)]
    read = {name for name in wanted if name.startswith("self.")} - _called(found.statements)
    read -= {name for method in methods for name in _modules(method)}
    making = _making(methods)
    for method in methods:
        if method is function or method.name in making:
            continue
        for node in nodes_below(method):
            if isinstance(node, ast.Assign) and computes(node, found.scope):
                stored = set(assigned_names(node))
                if any(name in stored for name in read):
                    raise UnclearLossError(node.lineno)


def _making(methods: Sequence[Function]) -> set[str]:
    """The methods that only make an object: special ones, and what nothing but `__init__` calls."""
    called: dict[str, set[str]] = defaultdict(set)
    callers: dict[str, set[str]] = defaultdict(set)
    for method in methods:
        for node in nodes_below(method):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
                called[method.name].add(node.attr)
                callers[node.attr].add(method.name)
    making = {method.name for method in methods if method.name.startswith("__")}
    pending = [*making]
    while pending:
        maker = pending.pop()
        for name in called[maker]:
            callers[name].discard(maker)
            if not callers[name] and name not in making:
                making.add(name)
                pending.append(name)
    return making


@once_by_node
def _modules(method: Function) -> frozenset[str]:
    """What a method asks for its parameters or the like: a model, which is no result."""
    return frozenset(
        ast.unparse(node.value)
        for node in nodes_below(method)
        if isinstance(node, ast.Attribute) and node.attr in OF_MODULES
    )


def _called(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that are called or whose methods are: models and criteria, which are no results."""
    found: set[str] = set()
    for node in (part for statement in statements for part in nodes_below(statement)):
        name = dotted_name(node.func) if isinstance(node, ast.Call) else None
        if name is not None:
            parts = (name.root, *name.path)
            found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found


def computes(statement: ast.stmt, scope: Scope) -> bool:
    """Whether a statement calls a model, a criterion or the like."""
    calls = (node for node in nodes_below(statement) if isinstance(node, ast.Call))
    return any(is_computation(call, scope) for call in calls)


def is_computation(call: ast.Call, scope: Scope) -> bool:
    """Whether a call is one of a model, a criterion or the like; not what it is given."""
    return _is_computation(call.func, scope) or _trains(call)


def _trains(call: ast.Call) -> bool:
    """`model.train(batch)` of a model that computes its loss so, and no `model.train()`."""
    is_named = isinstance(call.func, ast.Attribute) and call.func.attr == "train"
    return is_named and any(isinstance(each, (ast.Call, ast.Starred)) for each in call.args)


def _is_computation(callee: ast.expr, scope: Scope) -> bool:
    if isinstance(callee, ast.Attribute) and callee.attr in _NO_COMPUTATION:
        return False
    if isinstance(callee, ast.Name) and callee.id in _BUILTINS:
        return False
    names = [value.name for value in resolve(callee, scope) if isinstance(value, Qualified)]
    roots = {name.partition(".")[0] for name in names}
    if roots & _WITHOUT_MODELS:
        return any(name.startswith("torch.nn.functional.") for name in names)
    return True


@once_by_node
def names_read(node: ast.AST) -> frozenset[str]:
    """The names that a node reads, dotted as far as they are."""
    found: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, (ast.Name, ast.Attribute)):
            name = dotted_name(part)
            if name is not None:
                found.add(".".join((name.root, *name.path)))
                continue
        pending += ast.iter_child_nodes(part)
    return frozenset(found)


@once_by_node
def assigned_names(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a statement assigns, in blocks of it as well."""
    return tuple(_assigned_in(statement))


def _assigned_in(statement: ast.stmt) -> Iterator[str]:
    for node in nodes_below(statement):
        is_target = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
        if is_target and isinstance(node, ast.expr):
            name = dotted_name(node)
            if name is not None:
                yield ".".join((name.root, *name.path))


def _filled_names(statement: ast.stmt) -> Iterator[str]:
    """What gets something more: `batch.update(losses)`, `losses["main"] = ...`."""
    for node in nodes_below(statement):
        owner: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            owner = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value if node.func.attr in _FILLING else None
        name = None if owner is None else dotted_name(owner)
        if name is not None:
            yield ".".join((name.root, *name.path))


def is_part(name: str, assigned: str) -> bool:
    """Whether a name is another or an attribute of it."""
    return name == assigned or name.startswith(f"{assigned}.")


def _parameters(function: Function | None) -> set[str]:
    if function is None:
        return set()
    arguments = function.args
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
