"""The nodes of a module, each with the scope in which its names are looked up."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.scopes import ClassScope, FunctionScope, Scope


class ScopedNode(NamedTuple):
    """A node, and where its names are looked up."""

    node: ast.AST
    scope: Scope


def scoped_nodes(body: Iterable[ast.stmt], module: Scope) -> Iterator[ScopedNode]:
    """Every node of some statements of a module, outer ones first."""
    pending: list[tuple[ast.AST, Scope]] = [(node, module) for node in body]
    pending.reverse()
    while pending:
        node, scope = pending.pop()
        yield ScopedNode(node, scope)
        inner = scope
        outside: set[ast.AST | None] = set()
        if isinstance(node, Function):
            owner = scope if isinstance(scope, ClassScope) else None
            inner = FunctionScope(node, scope.function_parent() or scope, owner)
            outside = {*node.decorator_list, node.args, node.returns}
        elif isinstance(node, ast.ClassDef):
            inner = ClassScope(node, scope.function_parent() or scope)
            outside = {*node.decorator_list, *node.bases, *node.keywords}
        elif isinstance(node, ast.Lambda):
            inner = FunctionScope(node, scope.function_parent() or scope)
            outside = {node.args}
        children = [(c, scope if c in outside else inner) for c in ast.iter_child_nodes(node)]
        pending += reversed(children)
