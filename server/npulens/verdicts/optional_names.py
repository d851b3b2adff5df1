"""Names that are `None` or false on an NPU, where the library that they represent is not there."""

import ast
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from npulens.syntax.bindings import target_names
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.failing_imports import catches_failing_import, packages
from npulens.verdicts.library_questions import queried_library


def missing_names(body: Iterable[ast.stmt], missing: AbstractSet[str]) -> Iterator[str]:
    """The names that `try: import library` binds at the top of a module, and flags beside it.

    `missing` has the roots of the libraries that an NPU does not have.
    """
    for statement in body:
        if isinstance(statement, ast.If):
            yield from missing_names((*statement.body, *statement.orelse), missing)
        elif isinstance(statement, ast.Try) and _imports(statement.body, missing):
            handlers = [h for h in statement.handlers if catches_failing_import(h)]
            if handlers:
                yield from _names(statement, handlers[0])


def with_what_needs_them(
    body: Iterable[ast.stmt], names: set[str], missing: AbstractSet[str]
) -> set[str]:
    """The names, and flags that need them or check for a library: `fast = all((scan, update))`."""

    def part(node: ast.expr) -> Answer:
        """`find_spec("triton") is not None`, `is_triton_available()`."""
        is_comparison = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.IsNot)
        queried = node.left if is_comparison else node  # type: ignore[attr-defined]
        is_call = isinstance(queried, ast.Call)
        return Answer(False) if is_call and queried_library(queried, missing) else UNKNOWN

    for statement in body:
        if (
            isinstance(statement, ast.Assign)
            and without(names, statement.value, part).holds is False
        ):
            names.update(name for target in statement.targets for name in target_names(target))
    return names


def without(
    marks: AbstractSet[str],
    test: ast.expr,
    otherwise: Callable[[ast.expr], Answer] = lambda _: UNKNOWN,
) -> Answer:
    """What a condition comes to where some names are nothing.

    `otherwise` answers parts of it that check for none of them.
    """

    def part(node: ast.expr) -> Answer:
        if isinstance(node, ast.Name) and node.id in marks:
            return Answer(False)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            other, relation = node.comparators[0], node.ops[0]
            is_none = isinstance(other, ast.Constant) and other.value is None
            if node.left.id in marks and is_none:
                return Answer(isinstance(relation, (ast.Is, ast.Eq)))
        return otherwise(node)

    return joined(test, part)


def _names(statement: ast.Try, handler: ast.ExceptHandler) -> Iterator[str]:
    """What is bound where the import works, and is nothing or not bound where it fails."""
    otherwise = dict(_assigned(handler.body))
    for name, value in _bound((*statement.body, *statement.orelse)):
        other = otherwise.get(name)
        is_nothing = isinstance(other, ast.Constant) and not other.value
        is_flag = other is None and isinstance(value, ast.Constant) and value.value is True
        if is_nothing or is_flag or (other is None and value is None and not otherwise):
            yield name


def _imports(body: Iterable[ast.stmt], missing: AbstractSet[str]) -> bool:
    """Whether a block imports such a library in any case."""
    imports = (statement for statement in body if not getattr(statement, "level", 0))
    return any(not missing.isdisjoint(packages(statement)) for statement in imports)


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
            names = (name for target in statement.targets for name in target_names(target))
            yield from ((name, statement.value) for name in names)
