"""Loops over the rows of a tensor, whose elements the host reads one after the other."""

import ast
from collections.abc import Collection, Iterable, Iterator

from npulens.graphs.definitions import FunctionHere, inner_statements
from npulens.shapes.evaluation.tensor_evidence import elements_bound
from npulens.shapes.values.events import Event
from npulens.shapes.values.shape_rules import BRANCH, HOST_READ, SIZE_FROM_DATA
from npulens.syntax.walking import nodes_below

_READING = frozenset({HOST_READ, BRANCH, SIZE_FROM_DATA})


def reads_some(loop: ast.For | ast.AsyncFor | ast.While, names: Collection[str]) -> bool:
    """Whether a loop reads one of some names, and does not only add to it."""
    return bool(names) and any(
        isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load)
        for part in nodes_below(loop)
    )


def iterated(node: ast.expr) -> Iterator[ast.expr]:
    """What a loop goes over: `x` of `x`, `enumerate(x)`, and `zip(x, y)`."""
    match node:
        case ast.Call(ast.Name("enumerate" | "zip"), arguments):
            for argument in arguments:
                yield from iterated(argument)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            yield node


def reads_elements(
    loop: ast.For | ast.AsyncFor, events: Iterable[Event], function: FunctionHere
) -> bool:
    """Whether the host reads what a loop gets, in the loop itself.

    Args:
        loop: The loop.
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
    own = _names_in(elements_bound(loop))
    for statement in inner_statements(loop.body):
        if isinstance(statement, ast.Assign) and not own.isdisjoint(_names_in(statement.value)):
            own |= _names_in(*statement.targets)
    return any(not own.isdisjoint(_names_in(node)) for node in read)


def _names_in(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in nodes_below(node) if isinstance(part, ast.Name)}
