"""Which functions can hold a computation that a pattern describes, told from their text."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from npulens.syntax.walking import names_in
from npulens.syntax.words import Words
from npulens.text.lines import LineMap

_NPU_CHOICE = re.compile(
    r"torch_npu_available|(?<![a-z])(?<!torch_)npu(?!_\w+\(|lens|\d{3})", re.IGNORECASE
)
"""The NPU is asked for, which is more than an operator of it being called."""
_LONGEST_LINE = 200
_NPU_NAME = re.compile(r"(?<![a-z])npu", re.IGNORECASE)


Places = Sequence[tuple[int, str]]
"""Offsets in a text, in order, each with the word that stands there."""
Besides = Mapping[str, re.Pattern[str] | None]
"""The words of patterns, each with what a function holds beside it if it can match."""


def word_places(words: Words, searched: Iterable[str]) -> Places:
    """Where words of patterns stand; not inside others, as in `interface`, nor in comments."""
    text = words.text
    return sorted(
        (place, word)
        for word in searched
        for place in words.places(word)
        if not (word[0].islower() and text[place - 1 : place].islower())
        and not _is_in_comment(text, place)
    )


def _is_in_comment(text: str, place: int) -> bool:
    """Whether a line begins with a comment before a place."""
    line = text[max(0, place - _LONGEST_LINE) : place].rpartition("\n")[2]
    return line.lstrip().startswith("#")


def helpers_in(body: Iterable[ast.stmt], lines: LineMap, places: Places) -> Iterator[str]:
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
        words: The words in it.
        definitions: Those of the module.
        places: Where words of patterns stand in the text.
        helpers: Functions of the module that hold some, see `helpers_in`.
        besides: What stands beside the words.
    """

    def __init__(
        self,
        lines: LineMap,
        words: Words,
        definitions: Definitions,
        places: Places,
        helpers: frozenset[str],
        besides: Besides,
    ) -> None:
        self._text = lines.text
        self._lines = lines
        self._definitions = definitions
        of_helpers = [(at, name) for name in helpers for at in words.places_alone(name)]
        self._places = sorted([*places, *of_helpers])
        self._besides = besides
        self._names_npu = _NPU_NAME.search(words.joined) is not None

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
        members = _any_attribute(self._members(owner))
        for name, method in owner.methods.items():
            if name != "__init__" and self._is_one(method.node, members):
                yield from _with_nested(method)

    def _is_one(self, node: Function, members: re.Pattern[str] | None) -> bool:
        reach = _reach(node, self._lines)
        if not self._may_match(node, *reach) and (
            members is None or members.search(self._text, *reach) is None
        ):
            return False
        # Or it has a way for the NPU already.
        return not self._names_npu or _NPU_CHOICE.search(self._text, *reach) is None

    def _may_match(self, node: Function, start: int, end: int) -> bool:
        """Whether a word stands in a function with what has to be beside it, or a helper does."""
        reaches = _code_of(node, self._lines)
        held = {word for reach in reaches for _, word in _between(self._places, *reach)}
        besides = (self._besides.get(word) for word in held)
        return any(
            beside is None or beside.search(self._text, start, end) is not None
            for beside in besides
        )

    def _has_part(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a word or a helper stands in a node."""
        return any(_is_between(self._places, *reach) for reach in _code_of(node, self._lines))

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
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                continue
            if self._has_part(statement) or (
                carried
                and statement.value is not None
                and not carried.isdisjoint(names_in(statement.value))
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


def _any_attribute(names: Iterable[str]) -> re.Pattern[str] | None:
    """Matches any of some attributes, `None` if there are none."""
    words = sorted(set(names))
    return re.compile(rf"\.(?:{'|'.join(words)})\b") if words else None


def _is_between(places: Places, start: int, end: int) -> bool:
    index = bisect_left(places, (start, ""))
    return index < len(places) and places[index][0] < end


def _between(places: Places, start: int, end: int) -> Places:
    return places[bisect_left(places, (start, "")) : bisect_left(places, (end, ""))]


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
