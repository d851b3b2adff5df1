"""What runs where the import of a library fails, for people."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.checks.intent.guarded_imports import GuardedImport, ImportFinder
from npulens.syntax.other_modules import member_of
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import names_in, nodes_below
from npulens.verdicts.optional_names import without

_LONGEST = 60
_NO_WORK = frozenset(
    {"print", "warn", "warning", "info", "debug", "error", "log", "warning_once", "isinstance"}
    | {"len", "range", "format", "super", "getattr", "hasattr", "int", "float", "bool", "str"}
)
"""Calls that do nothing in the place of a library."""


class StandIn(NamedTuple):
    """What takes the place of a library: its text, and its line."""

    text: str
    line: int


def stand_in(guarded: GuardedImport, finder: ImportFinder) -> StandIn | None:
    """What takes the place of what an import brings; `None` if the module does not show it."""
    for name, statement in sorted(guarded.others.items(), key=_by_place):
        return _bound(name, statement, finder)
    if isinstance(guarded.guard, ast.If) and guarded.statement in guarded.guard.body:
        found = dict(_named(guarded.guard.orelse))
        for name in sorted(guarded.names & found.keys()):
            return _bound(name, found[name], finder)
    for node in finder.nodes:
        if isinstance(node, ast.If) and node is not guarded.guard:
            if not guarded.marks.isdisjoint(names_in(node.test)):
                called = _first_call(_other_arm(node, guarded, finder), finder)
                if called is not None:
                    return called
        elif isinstance(node, ast.IfExp) and not guarded.marks.isdisjoint(names_in(node.test)):
            other = node.body if without(guarded.marks, node.test).holds else node.orelse
            if not isinstance(other, ast.Constant):
                return _shown(other, finder)
    return None


def _by_place(bound: tuple[str, ast.stmt]) -> tuple[int, str]:
    name, statement = bound
    return statement.lineno, name


def _named(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield alias.asname or alias.name, statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if not isinstance(statement.value, ast.Constant):
                yield statement.targets[0].id, statement
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield statement.name, statement


def _bound(name: str, statement: ast.stmt, finder: ImportFinder) -> StandIn:
    """What a name is bound to."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        found = next((a.name for a in statement.names if name in (a.asname, a.name)), name)
        if isinstance(statement, ast.ImportFrom):
            found = member_of("." * statement.level + (statement.module or ""), found)
        return StandIn(found, statement.lineno)
    if isinstance(statement, ast.Assign):
        return _shown(statement.value, finder)
    return StandIn(name, statement.lineno)


def _other_arm(node: ast.If, guarded: GuardedImport, finder: ImportFinder) -> list[ast.stmt]:
    """What an `if` runs where what it checks for is not there."""
    if without(guarded.marks, node.test).holds:
        return node.body
    if node.orelse or not isinstance(node.body[-1], (ast.Return, ast.Raise)):
        return node.orelse
    owner = finder.owners.get(node)
    for field in ("body", "orelse"):
        block = getattr(owner, field, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _first_call(body: Sequence[ast.stmt], finder: ImportFinder) -> StandIn | None:
    """The first function that statements call for a result."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return None
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
            continue
        for node in nodes_below(statement):
            if isinstance(node, ast.Call) and dotted_name(node.func) is not None:
                callee = node.func
                last = callee.attr if isinstance(callee, ast.Attribute) else finder.source(callee)
                if last not in _NO_WORK:
                    return _shown(callee, finder)
    return None


def _shown(node: ast.expr, finder: ImportFinder) -> StandIn:
    text = " ".join(finder.source(node).split())
    return StandIn(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…", node.lineno)
