"""Walks over syntax that leave out what holds nothing: operators, contexts, mostly names."""

import ast
from collections.abc import Iterator
from typing import Any


def _with_kinds_of(*bases: type[ast.AST]) -> set[type]:
    return {*bases, *(kind for base in bases for kind in base.__subclasses__())}


_EMPTY = _with_kinds_of(ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)
_LEAVES = frozenset(_EMPTY | {ast.Name, ast.Constant, type(None), str, int})
_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "name", "lineno", "type_comment"})
_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def nodes_in(root: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but leaves, in the order of the source."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        for name in _fields.get(node.__class__) or _fields_of(node.__class__):
            value: Any = getattr(node, name, None)
            if value.__class__ is list:
                pending += [part for part in reversed(value) if part.__class__ not in _LEAVES]
            elif value.__class__ not in _LEAVES:
                pending.append(value)


def parents_in(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each node below a node stands in, names and constants among them."""
    found: dict[ast.AST, ast.AST] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        for name in _fields.get(node.__class__) or _fields_of(node.__class__):
            value = getattr(node, name, None)
            for part in value if value.__class__ is list else (value,):
                if isinstance(part, ast.AST):
                    found[part] = node
                    pending.append(part)
    return found


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind that hold nodes, the last first."""
    names = reversed(kind._fields)
    found = _fields[kind] = tuple(name for name in names if name not in _NO_NODES)
    return found
