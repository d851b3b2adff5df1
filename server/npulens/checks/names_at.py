"""What the names at a place of a Python text mean."""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from npulens.catalog.native_tables import NativeTable
from npulens.checks.tensors import tensor_method
from npulens.syntax.bindings import Bindings, bindings_of, walrus_lines
from npulens.syntax.meanings import Member, Qualified, resolve
from npulens.syntax.scoped_nodes import ScopedNode, scoped_children
from npulens.syntax.scopes import (
    Comprehension,
    ModuleNames,
    ModuleScope,
    Scope,
    comprehension_scope,
)
from npulens.syntax.statements import ParsedText, parse_statements
from npulens.text.lines import LineMap
from npulens.text.spans import Span

Known = Mapping[str, tuple[ParsedText, Bindings]]
"""By its text what is known already of a segment of the module."""


class NameAt(NamedTuple):
    """A name, where it is, and whether it is the text of a string."""

    name: str
    span: Span
    is_text: bool = False


def names_at(text: str, offset: int, known: Known, native: NativeTable) -> list[NameAt]:
    """The full names that an expression at a place may represent, the innermost first.

    The table says what returns a tensor, so that methods of tensors are known.
    """
    parsed = _segments(text, known)
    bindings = []
    current = start = at = 0
    for index, segment in enumerate(parsed):
        there = known.get(segment.text)
        if there is not None and there[0] is segment:
            bindings.append(there[1])
        else:
            bindings.append(bindings_of(segment.body, walrus_lines(segment.text)))
        if at <= offset:
            current, start = index, at
        at += len(segment.text)
    segment = parsed[current]
    scope = ModuleScope(ModuleNames(bindings), current, walrus_lines(segment.text))
    return _Finder(LineMap(segment.text), start, offset - start, native).names(segment.body, scope)


def _segments(text: str, known: Known) -> list[ParsedText]:
    """The segments of a text; where those known make it up, it is not cut again."""
    found = []
    end = 0
    for segment, (parsed, _) in known.items():
        if not text.startswith(segment, end):
            break
        found.append(parsed)
        end += len(segment)
    if found and end == len(text):
        return found
    return parse_statements(text, {segment: parsed for segment, (parsed, _) in known.items()})


class _Finder:
    """Goes down to a place in one segment of a module."""

    def __init__(self, lines: LineMap, start: int, offset: int, native: NativeTable) -> None:
        self._lines = lines
        self._start = start
        self._offset = offset
        self._native = native

    def names(self, body: list[ast.stmt], scope: Scope) -> list[NameAt]:
        found: list[NameAt] = []
        level = [ScopedNode(node, scope) for node in body]
        while level:
            there = [each for each in level if self._contains(each.node)]
            level = []
            for node, around in there:
                found += self._meant(node, around)
                level += _children(node, around)
        return found[::-1]

    def _contains(self, node: ast.AST) -> bool:
        if not hasattr(node, "lineno"):
            return True  # arguments, comprehensions: what is in them has a place
        span = self._lines.span(node)
        decorators = getattr(node, "decorator_list", None)
        start = min(span.start, self._lines.span(decorators[0]).start) if decorators else span.start
        return start <= self._offset <= span.end

    def _meant(self, node: ast.AST, scope: Scope) -> Iterator[NameAt]:
        if isinstance(node, (ast.Name, ast.Attribute)):
            for value in resolve(node, scope):
                name = value.name if isinstance(value, (Qualified, Member)) else None
                if isinstance(value, Member):
                    name = tensor_method(value.name, self._native)
                if name is not None:
                    yield NameAt(name, self._place(node))
        elif isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in filter(self._contains, node.names):
                yield NameAt(f"{module}{alias.name}", self._place(alias))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield NameAt(node.value, self._place(node), is_text=True)

    def _place(self, node: ast.AST) -> Span:
        """Where a node is in the module."""
        return self._lines.span(node).shifted(self._start)


def _children(node: ast.AST, scope: Scope) -> Iterator[ScopedNode]:
    """What a node consists of, each with the scope in which its names are looked up."""
    if isinstance(node, Comprehension):
        scope = comprehension_scope(node, scope)
    return scoped_children(node, scope)
