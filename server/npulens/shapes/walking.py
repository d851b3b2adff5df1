"""A walk over syntax that leaves out what holds nothing: names, constants, operators."""

import ast
from collections.abc import Iterator
from typing import Any

_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop)
_EMPTY = frozenset({"ctx", "op", "ops", "id", "attr", "name", "lineno", "type_comment"})
_TYPES = [kind for kind in vars(ast).values() if isinstance(kind, type)]
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in reversed(kind._fields) if name not in _EMPTY)
    for kind in _TYPES
    if issubclass(kind, ast.AST)
}
_HOLDING = frozenset(kind for kind in _FIELDS if not issubclass(kind, _LEAVES))


def nodes_in(root: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but leaves, in the order of the source."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        for name in _FIELDS[node.__class__]:
            value: Any = getattr(node, name, None)
            kind = value.__class__
            if kind is list:
                pending += [part for part in reversed(value) if part.__class__ in _HOLDING]
            elif kind in _HOLDING:
                pending.append(value)


def parents_in(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each node below a node stands in, names and constants among them."""
    found: dict[ast.AST, ast.AST] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        for name in _FIELDS[node.__class__]:
            value = getattr(node, name, None)
            for part in value if value.__class__ is list else (value,):
                if isinstance(part, ast.AST):
                    found[part] = node
                    pending.append(part)
    return found
