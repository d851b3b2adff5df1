"""Which functions can hold a computation that a pattern describes, told from their text."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from npulens.graphs.definitions import (
    ClassHere,
    Definitions,
    FunctionHere,
    inner_statements,
    nested_function,
    stored_attributes,
    stored_by,
)
from npulens.syntax.bindings import Function, target_names
from npulens.syntax.docstrings import docstring_of
from npulens.syntax.words import identifier_in
from npulens.text.lines import LineMap

_NPU_CHOICE = re.compile(
    r"torch_npu_available|(?<![a-z])(?<!torch_)npu(?!_\w+\(|lens|\d{3})", re.IGNORECASE
)
"""The NPU is asked for, which is more than an operator of it being called."""


def word_places(text: str, identifiers: Iterable[str], words: Sequence[str]) -> tuple[int, ...]:
    """The offsets at which words of patterns stand in a text; not inside others, as in `interface`.

    The identifiers of the text, each once, are searched first: they are a fraction of it.
    """
    named = "\n".join(identifiers)
    places: set[int] = set()
    for word in words:
        if identifier_in(word) not in named:
            continue
        may_follow = not word[0].islower()
        at = text.find(word)
        while at >= 0:
            if may_follow or not text[at - 1 : at].islower():
                places.add(at)
            at = text.find(word, at + 1)
    return tuple(sorted(places))


def helpers_in(body: Iterable[ast.stmt], lines: LineMap, places: Sequence[int]) -> Iterator[str]:
    """Functions at the top of a piece that hold a word of a pattern; their callers may match."""
    for node in body:
        if not isinstance(node, Function):
            continue
        if any(_is_between(places, *reach) for reach in _code_of(node, lines)):
            yield node.name


class Candidates:
    """The functions of one piece that are worth evaluating.

    Args:
        lines: The text of the piece.
        definitions: Those of the module.
        places: Where words of patterns stand in the text.
        helpers: Functions of the module that hold some, see `helpers_in`.
    """

    def __init__(
        self,
        lines: LineMap,
        definitions: Definitions,
        places: Sequence[int],
        helpers: frozenset[str],
    ) -> None:
        self._text = lines.text
        self._lines = lines
        self._definitions = definitions
        self._places = places
        self._helpers = _any_of(helpers)

    def among(self, body: Sequence[ast.stmt]) -> Iterator[FunctionHere]:
        """Functions that hold a word of a pattern, or use something of the module that does."""
        for node in body:
            if isinstance(node, ast.ClassDef):
                owner = self._definitions.classes.get(node.name)
                if owner is not None and owner.node is node:
                    yield from self._methods(owner)
            elif isinstance(node, Function):
                function = self._definitions.functions.get(node.name)
                if function is not None and function.node is node and self._is_one(node, None):
                    yield from _with_nested(function)

    def _methods(self, owner: ClassHere) -> Iterator[FunctionHere]:
        if not self._has_part(owner.node):
            return
        members = _any_of(self._members(owner), r"\.")
        for name, method in owner.methods.items():
            if name != "__init__" and self._is_one(method.node, members):
                yield from _with_nested(method)

    def _is_one(self, node: Function, members: re.Pattern[str] | None) -> bool:
        reach = _reach(node, self._lines)
        if not self._has_part(node) and (
            members is None or members.search(self._text, *reach) is None
        ):
            return False
        return _NPU_CHOICE.search(self._text, *reach) is None  # or it has a way for the NPU already

    def _has_part(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a word or a helper stands in a node."""
        return any(
            _is_between(self._places, *reach)
            or (self._helpers is not None and self._helpers.search(self._text, *reach) is not None)
            for reach in _code_of(node, self._lines)
        )

    def _members(self, owner: ClassHere) -> Iterator[str]:
        """Methods and attributes of `self` that may bring a part of a computation.

        Of base classes all of them: their text may be another piece.
        """
        for current in self._definitions.lineage(owner):
            constructor = current.methods.get("__init__")
            if current is not owner:
                yield from current.methods
                yield from () if constructor is None else stored_attributes(constructor)
                continue
            yield from (n for n, m in owner.methods.items() if self._has_part(m.node))
            if constructor is not None:
                yield from self._constructed(constructor)

    def _constructed(self, constructor: FunctionHere) -> Iterator[str]:
        """Attributes whose value names a part, also by way of a parameter or a variable."""
        carried = self._parameters(constructor.node.args)
        statements = sorted(inner_statements(constructor.node.body), key=lambda s: s.lineno)
        for statement in statements:
            if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
                continue
            if self._has_part(statement) or (
                carried
                and statement.value is not None
                and any(
                    isinstance(n, ast.Name) and n.id in carried for n in ast.walk(statement.value)
                )
            ):
                yield from stored_by(statement, constructor.receiver)
                targets = (
                    statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                )
                carried.update(name for target in targets for name in target_names(target))

    def _parameters(self, arguments: ast.arguments) -> set[str]:
        """Parameters whose default is such a part."""
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(reversed(positional), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        return {p.arg for p, default in pairs if default is not None and self._has_part(default)}


def _with_nested(function: FunctionHere) -> Iterator[FunctionHere]:
    """A function and those defined in it, which are also read by themselves."""
    yield function
    for node in inner_statements(function.node.body):
        if isinstance(node, ast.FunctionDef):
            yield from _with_nested(nested_function(node, function))


def _any_of(names: Iterable[str], before: str = r"\b") -> re.Pattern[str] | None:
    """Matches any of some names standing alone, `None` if there are none."""
    words = sorted(set(names))
    return re.compile(f"{before}(?:{'|'.join(words)})\\b") if words else None


def _is_between(places: Sequence[int], start: int, end: int) -> bool:
    index = bisect_left(places, start)
    return index < len(places) and places[index] < end


def _code_of(node: ast.stmt | ast.expr, lines: LineMap) -> Iterator[tuple[int, int]]:
    """What a node reaches over, without the lines of its docstring."""
    start, end = _reach(node, lines)
    text = docstring_of(node)
    if text is not None:
        yield start, lines.offset(text.lineno, 0)
        start = _reach(text, lines)[1]
    yield start, end


def _reach(node: ast.stmt | ast.expr, lines: LineMap) -> tuple[int, int]:
    """From where to where the text of a node goes, its first line as a whole."""
    start = lines.offset(node.lineno, 0)
    return start, lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
