"""Loops over the rows of a tensor, whose elements the host reads one after the other."""

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TypeGuard

from npulens.graphs.definitions import FunctionHere, inner_statements
from npulens.shapes.evaluation.tensor_evidence import elements_bound, is_accelerator
from npulens.shapes.values.events import Event
from npulens.shapes.values.shape_rules import BRANCH, HOST_READ, SIZE_FROM_DATA
from npulens.syntax.by_node import once_by_node
from npulens.syntax.walking import nodes_below

_READING = frozenset({HOST_READ, BRANCH, SIZE_FROM_DATA})


@once_by_node
def moves_batches(node: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop moves what it gets, or parts of it, to the device: all is on the host before.

    `for x, y in loader: x = x.to(device)`, `for batch in loader: y = batch["y"].cuda()`.
    """
    own = {part.id for part in nodes_below(elements_bound(node)) if isinstance(part, ast.Name)}
    for part in nodes_below(node):
        match part:
            case ast.Assign(value=ast.Name(name)) if name in own:
                own.update(e.id for t in part.targets for e in nodes_below(t) if _is_bound(e))
            case ast.comprehension(
                iter=ast.Call(ast.Attribute(ast.Name(name), "items" | "values"))
            ):
                own.update(e.id for e in nodes_below(part.target) if _is_bound(e) and name in own)
    return any(
        isinstance(part, ast.Call) and _sends(part) and _root_of_part(part) in own
        for part in nodes_below(node)
    )


@once_by_node
def loaders_of_host(node: ast.AST) -> frozenset[str]:
    """Names of what a function goes over in loops of which one moves what it gets."""
    loops = (part for part in nodes_below(node) if isinstance(part, (ast.For, ast.AsyncFor)))
    names = (iterated_name(loop.iter) for loop in loops if moves_batches(loop))
    return frozenset(names) - {""}


def iterated_name(node: ast.expr) -> str:
    """`loader` of `loader`, `enumerate(loader)` and `tqdm(loader, desc="train")`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else ""


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _sends(node: ast.Call) -> bool:
    """`x.cuda()`, `x.to(device)`, `x.to("npu:0")`, `x.to(device=args.device)`."""
    match node:
        case ast.Call(ast.Attribute(attr="cuda" | "npu")):
            return True
        case ast.Call(ast.Attribute(attr="to")):
            given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "device")]
            return any(map(_is_device, given))
    return False


def _is_device(node: ast.expr) -> bool:
    match node:
        case ast.Constant(str(name)):
            return not name.startswith("cpu")
        case ast.Name(name) | ast.Attribute(attr=name):
            return "device" in name.lower() and "cpu" not in name.lower()
    return is_accelerator(node)


def _root_of_part(call: ast.Call) -> str:
    """`batch` of `batch["x"].to(device)` and `batch.x.cuda()`; empty of what is computed."""
    node: ast.expr = call
    while isinstance(node, (ast.Subscript, ast.Attribute)) or node is call:
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def reads_some(loop: ast.For | ast.AsyncFor | ast.While, names: Collection[str]) -> bool:
    """Whether a loop reads one of some names, and does not only add to it."""
    return bool(names) and any(
        isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load)
        for part in nodes_below(loop)
    )


def iterated(node: ast.expr, target: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a loop goes over, each with what it binds: `x` of `x`, `enumerate(x)`, `zip(x, y)`."""
    match node, target:
        case ast.Call(ast.Name("enumerate"), [argument, *_]), ast.Tuple([_, element]):
            yield from iterated(argument, element)
        case ast.Call(ast.Name("zip"), arguments), ast.Tuple(elements):
            if len(arguments) == len(elements):
                for argument, element in zip(arguments, elements, strict=True):
                    yield from iterated(argument, element)
        case ast.Call(ast.Name("enumerate" | "zip"), arguments), _:
            for argument in arguments:
                yield from iterated(argument, target)
        case ((ast.Name() | ast.Attribute() | ast.Subscript()), _):
            yield node, target


def reads_elements(
    loop: ast.For | ast.AsyncFor,
    bound: ast.expr,
    events: Iterable[Event],
    function: FunctionHere,
) -> bool:
    """Whether the host reads what a loop gets, in the loop itself.

    Args:
        loop: The loop.
        bound: What it binds that to.
        events: What happened in it.
        function: The function that it is in.
    """
    read = [
        event.node
        for event in events
        if event.synchronizes and event.rule in _READING and event.function is function
    ]
    if not read:
        return False
    own = _names_in(bound)
    for statement in inner_statements(loop.body):
        if isinstance(statement, ast.Assign) and not own.isdisjoint(_names_in(statement.value)):
            own |= _names_in(
                *(t for t in statement.targets if isinstance(t, (ast.Name, ast.Tuple)))
            )
    return any(not own.isdisjoint(_names_in(node)) for node in read)


def _names_in(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in nodes_below(node) if isinstance(part, ast.Name)}
