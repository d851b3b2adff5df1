"""Docstrings: examples in them are code of somebody else."""

import ast


def docstring_of(node: ast.stmt | ast.expr) -> ast.expr | None:
    """The docstring of a function or class; nothing for other statements and expressions."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return value if is_text else None
