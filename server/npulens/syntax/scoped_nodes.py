"""The nodes of a module, each with the scope in which its names are looked up."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.scopes import Scope, inner_scope


class ScopedNode(NamedTuple):
    """A node, and where its names are looked up."""

    node: ast.AST
    scope: Scope


def scoped_nodes(body: Iterable[ast.stmt], module: Scope) -> Iterator[ScopedNode]:
    """Every node of some statements of a module, outer ones first."""
    pending = [ScopedNode(node, module) for node in body]
    pending.reverse()
    while pending:
        found = pending.pop()
        yield found
        pending += reversed([*scoped_children(*found)])


def scoped_children(node: ast.AST, scope: Scope) -> Iterator[ScopedNode]:
    """The nodes in a node: only what is in the body of a function or class sees its names."""
    inside: set[ast.AST] = set()
    inner = scope
    if isinstance(node, (Function, ast.Lambda, ast.ClassDef)):
        inside.update(node.body if isinstance(node.body, list) else [node.body])
        inner = inner_scope(node, scope)
    for child in ast.iter_child_nodes(node):
        yield ScopedNode(child, inner if child in inside else scope)
