"""Walks over syntax that cost a fraction of `ast.walk`."""

import ast
from collections.abc import Iterable, Iterator
from typing import Any

_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop)
_EMPTY = frozenset({"ctx", "op", "ops", "id", "attr", "name", "lineno", "type_comment", "kind"})
"""Fields that hold no node, or one that says no more than its type."""
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in reversed(kind._fields) if name not in _EMPTY)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_WITH_NODES = frozenset(kind for kind in _FIELDS if not issubclass(kind, _LEAVES))


def nodes_below(root: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in the order of the source; operators and contexts are left out."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def names_in(root: ast.AST) -> Iterator[str]:
    """The names that occur in a node, in the order of the source."""
    return (node.id for node in nodes_below(root) if isinstance(node, ast.Name))


def blocks(nodes: Iterable[ast.AST]) -> Iterator[list[ast.stmt]]:
    """The lists of statements in some nodes."""
    for node in nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def choices(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value an expression may have: both of `a if b else c`."""
    if isinstance(node, ast.IfExp):
        yield from choices(node.body)
        yield from choices(node.orelse)
    else:
        yield node


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = (node.test.left, *node.test.comparators)
    is_equal = isinstance(node.test.ops[0], ast.Eq)
    return is_equal and any(isinstance(each, ast.Name) and each.id == "__name__" for each in sides)


def inner_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """The same without what holds nothing: names and constants are left out, too."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        for name in _FIELDS[node.__class__]:
            value: Any = getattr(node, name, None)
            kind = value.__class__
            if kind is list:
                pending += [part for part in reversed(value) if part.__class__ in _WITH_NODES]
            elif kind in _WITH_NODES:
                pending.append(value)


def parents_below(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """The parent of each node below a node."""
    parents: dict[ast.AST, ast.AST] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        found = children(node)
        parents.update(dict.fromkeys(found, node))
        pending += found
    return parents


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node, the last first; operators and contexts are left out."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            found += [part for part in reversed(value) if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found
