"""Imports of libraries that may fail: which names they bind, and what is used where they fail."""

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import target_names
from npulens.syntax.walking import nodes_below, parents_below
from npulens.text.spans import Span
from npulens.verdicts.failing_imports import tried_parts

Import = ast.Import | ast.ImportFrom


class GuardedImport(NamedTuple):
    """An import under a `try` or a condition.

    Attributes:
        guard: What it is under.
        names: The names that it binds.
        marks: Those of them that are nothing where it fails, and flags that say whether it did.
        flags: The flags alone.
        others: What other names are bound to where it fails.
    """

    statement: Import
    guard: ast.Try | ast.If
    names: frozenset[str]
    marks: frozenset[str]
    flags: frozenset[str]
    others: Mapping[str, ast.stmt]


class ImportFinder:
    """The guarded imports of a module, by place."""

    def __init__(self, module: WholeModule) -> None:
        self.nodes, self.owners = module.nodes, parents_below(module.tree)
        self.span, self.source = module.lines.span, module.source
        self._imports = [node for node in self.nodes if isinstance(node, Import)]
        self._spans = [self.span(node) for node in self._imports]

    def at(self, place: Span) -> Import | None:
        """The import that holds a place."""
        index = bisect_right(self._spans, Span(place.start, 1 << 60)) - 1
        is_inside = index >= 0 and place.end <= self._spans[index].end
        return self._imports[index] if is_inside else None

    def guarded(self, statement: Import) -> GuardedImport | None:
        """What is known of an import that may fail, or that a condition leaves out."""
        names = frozenset(a.asname or a.name.partition(".")[0] for a in statement.names)
        node: ast.AST = statement
        while node in self.owners:
            owner = self.owners[node]
            if isinstance(owner, ast.If):
                return GuardedImport(statement, owner, names, names, frozenset(), {})
            if isinstance(owner, ast.Try) and node in tried_parts(owner):
                return _tried(statement, owner, names)
            node = owner
        return None


def _tried(statement: Import, guard: ast.Try, names: frozenset[str]) -> GuardedImport:
    works = dict(_bound((*guard.body, *guard.orelse)))
    fails = dict(_bound([s for handler in guard.handlers for s in handler.body]))
    flags = {name for name, given in works.items() if _constant(given) is True}
    flags |= {name for name, given in fails.items() if _constant(given) is False}
    nothing = {name for name in names if _constant(fails.get(name)) in (None, False)}
    others = {name: fails[name] for name in names - nothing}
    return GuardedImport(
        statement, guard, names, frozenset(nothing | flags), frozenset(flags), others
    )


def _bound(body: "list[ast.stmt] | tuple[ast.stmt, ...]") -> Iterator[tuple[str, ast.stmt]]:
    """The names that statements bind, with the statements."""
    for statement in body:
        for part in nodes_below(statement):
            if isinstance(part, ast.Assign):
                for target in part.targets:
                    yield from ((name, part) for name in target_names(target))
            elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield part.name, part
            elif isinstance(part, Import):
                for alias in part.names:
                    yield alias.asname or alias.name.partition(".")[0], part


def _constant(statement: ast.stmt | None) -> object:
    """The constant that is assigned; `None` without a statement, `...` of everything else."""
    if statement is None:
        return None
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value.value if isinstance(value, ast.Constant) else ...
