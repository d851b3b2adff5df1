"""A walk over syntax that leaves out what holds nothing: names, constants, operators."""

import ast
from collections.abc import Iterator

_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop)
_EMPTY = frozenset({"ctx", "op", "ops", "id", "attr", "name", "lineno", "type_comment"})
_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def nodes_in(root: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but leaves, in the order of the source."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        kind = type(node)
        fields = _fields.get(kind)
        if fields is None:
            names = reversed(kind._fields)
            fields = _fields[kind] = tuple(name for name in names if name not in _EMPTY)
        for name in fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                pending += [
                    part
                    for part in reversed(value)
                    if isinstance(part, ast.AST) and not isinstance(part, _LEAVES)
                ]
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                pending.append(value)
