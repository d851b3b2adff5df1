"""Names that are `None` or false on an NPU, where the library that they stand for is not there."""

import ast
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from npulens.syntax.bindings import target_names

_FAILS = re.compile(r"ImportError|ModuleNotFoundError|Exception|BaseException")


def missing_names(body: Iterable[ast.stmt], missing: AbstractSet[str]) -> Iterator[str]:
    """The names that `try: import library` binds at the top of a module, and flags beside it.

    Args:
        body: Statements of the module.
        missing: The roots of the libraries that an NPU does not have.
    """
    for statement in body:
        if isinstance(statement, ast.If):
            yield from missing_names((*statement.body, *statement.orelse), missing)
        elif isinstance(statement, ast.Try) and _imports(statement.body, missing):
            handlers = [h for h in statement.handlers if _catches(h)]
            if handlers:
                yield from _names(statement, handlers[0])


def with_what_needs_them(body: Iterable[ast.stmt], names: set[str]) -> set[str]:
    """The names, and flags that need them: `fast = all((scan, update))`."""
    for statement in body:
        if isinstance(statement, ast.Assign) and _needs(statement.value, names):
            names.update(name for target in statement.targets for name in target_names(target))
    return names


def _needs(value: ast.expr, names: AbstractSet[str]) -> bool:
    """Whether an expression is false where one of some names is nothing."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "all" and value.args:
        value = value.args[0]
        return isinstance(value, (ast.Tuple, ast.List)) and any(
            _needs(e, names) for e in value.elts
        )
    if isinstance(value, ast.BoolOp):
        return isinstance(value.op, ast.And) and any(_needs(v, names) for v in value.values)
    if isinstance(value, ast.Compare):
        is_asked = isinstance(value.ops[0], ast.IsNot) and isinstance(value.left, ast.Name)
        return is_asked and value.left.id in names  # type: ignore[attr-defined]
    return isinstance(value, ast.Name) and value.id in names


def _names(statement: ast.Try, handler: ast.ExceptHandler) -> Iterator[str]:
    """What is bound where the import works, and is nothing or not bound where it fails."""
    otherwise = dict(_assigned(handler.body))
    for name, value in _bound((*statement.body, *statement.orelse)):
        other = otherwise.get(name)
        is_nothing = isinstance(other, ast.Constant) and not other.value
        if is_nothing or (name not in otherwise and value is None and not otherwise):
            yield name


def _imports(body: Iterable[ast.stmt], missing: AbstractSet[str]) -> bool:
    """Whether a block imports such a library in any case."""
    for statement in body:
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names = [statement.module or ""]
        else:
            continue
        if any(name.partition(".")[0] in missing for name in names):
            return True
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or _FAILS.search(ast.unparse(handler.type)) is not None


def _bound(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a block binds, with what is assigned to them."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0], None
    yield from _assigned(body)


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in target_names(target):
                    yield name, statement.value
