"""What a run that was cut did not come to, in the script that was run."""

import ast
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from npulens.syntax.parsing import tree_or_none

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_SILENT = (ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)
"""Statements that may leave no trace where they are run."""
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


class Unreached(NamedTuple):
    """Lines that were not reached.

    Attributes:
        function: The function that was not entered, `Net.sample` of a method; empty for other
            lines.
        line: The first, from 1.
        end_line: The last.
    """

    function: str
    line: int
    end_line: int


def unreached(text: str, reached: Collection[int]) -> tuple[Unreached, ...]:
    """The functions that no process entered, and the lines of others that none came to."""
    tree = tree_or_none(text)
    return () if tree is None else tuple(_of_block(tree.body, frozenset(reached), ""))


def _of_block(body: Sequence[ast.AST], reached: frozenset[int], prefix: str) -> Iterator[Unreached]:
    """What was not reached of statements, neighbours together."""
    reported = [node for node in body if not _is_silent(node)]
    for is_reached, group in groupby(reported, lambda node: _is_reached(node, reached)):
        nodes = list(group)
        if is_reached:
            for node in nodes:
                yield from _inside(node, reached, prefix)
        else:
            yield Unreached("", _lines(nodes[0])[0], _lines(nodes[-1])[-1])


def _inside(node: ast.AST, reached: frozenset[int], prefix: str) -> Iterator[Unreached]:
    """What was not reached in a statement that was."""
    if isinstance(node, (*_FUNCTION, ast.ClassDef)):
        name = f"{prefix}{node.name}"
        inner = [each for each in node.body if not _is_silent(each)]
        if isinstance(node, _FUNCTION) and not any(_is_reached(n, reached) for n in inner):
            if inner:
                yield Unreached(name, node.lineno, node.end_lineno or node.lineno)
            return
        prefix = f"{name}."
    for block in _BLOCKS:
        yield from _of_block(getattr(node, block, []), reached, prefix)


def _is_silent(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, _SILENT)


def _is_reached(node: ast.AST, reached: frozenset[int]) -> bool:
    return not reached.isdisjoint(_lines(node))


def _lines(node: ast.AST) -> range:
    """The lines of a statement, of a handler, or of a case."""
    first = getattr(node, "lineno", 0)
    if isinstance(node, ast.match_case):
        first = node.pattern.lineno
        return range(first, (node.body[-1].end_lineno or first) + 1)
    decorators = getattr(node, "decorator_list", ())
    first = min([first, *(each.lineno for each in decorators)])
    return range(first, (getattr(node, "end_lineno", None) or first) + 1)
