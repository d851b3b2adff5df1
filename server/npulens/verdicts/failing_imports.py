"""Blocks that go on where an import fails: what a `try` or `with` runs only if it succeeds."""

import ast

from npulens.syntax.values import dotted_name

_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_EXITS = frozenset({"exit", "_exit", "abort", "quit"})


def catches_failing_import(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is taken where an import fails."""
    return handler.type is None or _names_failure(handler.type)


def tried_parts(node: ast.Try) -> list[ast.stmt]:
    """What a `try` runs only if the imports in it succeed, where failing is no end."""
    for handler in node.handlers:
        if catches_failing_import(handler) and not _ends(handler.body[-1]):
            is_same = _taken(handler.body) & _taken(node.body)
            return [] if is_same else [*node.body, *node.orelse]
    return []


def _taken(body: list[ast.stmt]) -> set[str]:
    """The modules below a package that a block takes names from: `flash_attn.bert_padding`.

    A handler may try the same one by another name, which is no other way.
    """
    imports = (statement for statement in body if isinstance(statement, ast.ImportFrom))
    modules = {each.module or "" for each in imports if not each.level}
    return {module for module in modules if "." in module and not module.startswith("torch.")}


def suppresses(node: ast.With) -> bool:
    """Whether a `with` lets failing imports pass: `with suppress(ImportError)`."""
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    return any(_last(c.func) == "suppress" and any(map(_names_failure, c.args)) for c in calls)


def packages(statement: ast.AST) -> list[str]:
    """The packages that an import takes something from."""
    if isinstance(statement, ast.ImportFrom):
        return [(statement.module or "").partition(".")[0]]
    if isinstance(statement, ast.Import):
        return [alias.name.partition(".")[0] for alias in statement.names]
    return []


def _names_failure(kind: ast.expr) -> bool:
    """Whether an exception, or one of several, is that of an import."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(_last(each) in _CAUGHT for each in kinds)


def _ends(statement: ast.stmt) -> bool:
    """Whether a program that comes here does not go on."""
    called = statement.value if isinstance(statement, ast.Expr) else None
    is_exit = isinstance(called, ast.Call) and _last(called.func) in _EXITS
    return isinstance(statement, ast.Raise) or is_exit


def _last(node: ast.expr) -> str:
    """The last part of a dotted name."""
    named = dotted_name(node)
    return "" if named is None else (named.root, *named.path)[-1]
