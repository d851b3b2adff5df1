"""Where each node of a module stands: in which function, loops, statements and scope."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.scoped_nodes import scoped_children
from npulens.syntax.scopes import Scope

Loop = ast.For | ast.AsyncFor | ast.While


class Place(NamedTuple):
    """What a node stands in.

    Attributes:
        scope: Where its names are looked up.
        function: The innermost definition around it; `None` at the top of the module.
        owner: The class of which that function is a method.
        loops: The loops of that function around it, the outermost first.
        statements: The statements of that function around it, the outermost first.
    """

    scope: Scope
    function: Function | None
    owner: ast.ClassDef | None
    loops: tuple[Loop, ...]
    statements: tuple[ast.stmt, ...]


def placed_nodes(body: Sequence[ast.stmt], module: Scope) -> Iterator[tuple[ast.AST, Place]]:
    """All nodes of a module with their places, the outer ones first."""
    start = Place(module, None, None, (), ())
    pending: list[tuple[ast.AST, Place]] = [(node, start) for node in reversed(body)]
    while pending:
        node, place = pending.pop()
        if isinstance(node, ast.stmt):
            place = place._replace(statements=(*place.statements, node))
        yield node, place
        pending += reversed([*_inside(node, place)])


def _inside(node: ast.AST, place: Place) -> Iterator[tuple[ast.AST, Place]]:
    repeated = set(_repeated(node))
    for child, scope in scoped_children(node, place.scope):
        its = place._replace(scope=scope)
        if isinstance(node, Function) and scope is not place.scope:
            direct = place.owner if place.function is None or _is_method(node, place) else None
            its = Place(scope, node, direct, (), ())
        elif isinstance(node, ast.ClassDef):
            its = its._replace(owner=node)
        elif child in repeated and isinstance(node, Loop):
            its = its._replace(loops=(*place.loops, node))
        yield child, its


def _is_method(node: Function, place: Place) -> bool:
    return place.owner is not None and node in place.owner.body


def _repeated(node: ast.AST) -> Sequence[ast.AST]:
    """What a loop runs in each turn."""
    if isinstance(node, ast.While):
        return [node.test, *node.body]
    return node.body if isinstance(node, Loop) else ()
