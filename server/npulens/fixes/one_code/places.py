"""The nodes of a module with their scopes, parents and blocks."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.scopes import ClassScope, FunctionScope, Scope


class Placed(NamedTuple):
    """A node, and where its names are looked up."""

    node: ast.AST
    scope: Scope


class Block(NamedTuple):
    """The statements among which one stands, and where."""

    body: list[ast.stmt]
    at: int


def placed(tree: ast.Module, module: Scope) -> Iterator[Placed]:
    """Every node with its scope, outer ones first."""
    pending: list[tuple[ast.AST, Scope]] = [(node, module) for node in reversed(tree.body)]
    while pending:
        node, scope = pending.pop()
        yield Placed(node, scope)
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


def blocks_of(tree: ast.Module) -> dict[ast.stmt, Block]:
    """For each statement the block it stands in."""
    found: dict[ast.stmt, Block] = {}
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                found.update((s, Block(body, i)) for i, s in enumerate(body))
        pending += ast.iter_child_nodes(node)
    return found
