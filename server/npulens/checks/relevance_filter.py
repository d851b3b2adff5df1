"""Which statements hold a word that a rule could be about; the others are not visited.

Inside of classes and functions names count that represent such a word. A word is a *lasting* one if
what is made of it matters further: `s = torch.cuda.Stream()` makes `s` one, and a tensor that
`F.interpolate` computes is none.
"""

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from npulens.graphs.definitions import inner_statements, stored_by
from npulens.syntax.bindings import Function, parameters_of, target_names
from npulens.syntax.words import is_part_of_word
from npulens.text.lines import LineMap

_INNER_IMPORT = re.compile(r"\n[ \t]+(?:from|import)\b")
_ANYWHERE = frozenset({"cuda", "nccl", "npu"})
"""Those of device names may be parts of others: `cuda0`, `to_npu`."""
_NAMED_BY = frozenset(".\"'")
_ATTRIBUTE = re.compile(r"\.[^\W\d]\w*")
_WORD = re.compile(r"[^\W\d]\w*")
_WALRUS = re.compile(r"([^\W\d]\w*)\s*:=")
"""Rare, so the names that it binds count without a look at their values."""
_MANY = 20
"""Of more words than these, all words of a text are looked up, for time in proportion to it."""
_MAX_TURNS = 8
"""How far names are followed from one to the next; then all of the function count."""


class RelevanceFilter:
    """Where words of the tables occur in a segment.

    Args:
        lines: The lines of the segment.
        identifiers: Its identifiers.
        triggers: The trigger words that occur in it.
        aliases: Names of the module that represent something a table may know.
        parts: Trigger words that count behind a dot, in quotes, or where the module binds them.
        computing: Trigger words whose calls give tensors, which concern no further rule.
        stars: Whether the module imports names by `*`, which binds nobody knows what.

    Attributes:
        imports_inside: Whether functions or blocks of the segment import anything.
    """

    def __init__(
        self,
        lines: LineMap,
        identifiers: frozenset[str],
        triggers: frozenset[str],
        aliases: frozenset[str],
        parts: frozenset[str],
        computing: frozenset[str],
        stars: bool,
    ) -> None:
        self._text = text = lines.text
        self._starts = lines.starts
        self.imports_inside = _INNER_IMPORT.search(text) is not None
        if stars or self.imports_inside:
            parts = frozenset()
        known = identifiers | _ANYWHERE
        words = triggers | {alias for alias in aliases if alias.removeprefix(".") in known}
        lasting: list[int] = []
        places: list[int] = []
        for word in words:
            has_to_be_named = word in parts and word not in aliases
            found = (at for at in _places(text, word) if not has_to_be_named or _is_named(text, at))
            (places if word in computing else lasting).extend(found)
        self._lasting = sorted(lasting)
        self._places = sorted({*places, *lasting})
        self._imports = bool(words)
        self._has_walrus = ":=" in text

    def among(self, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        """Those of some statements that are worth a visit."""
        for node in body:
            if self.is_relevant(node) or (
                self._imports and isinstance(node, (ast.Import, ast.ImportFrom))
            ):
                yield node

    def members(self, node: ast.ClassDef, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements of a class to visit; a method needs a word or an attribute with one."""
        attributes = [(f".{name}", lasts) for name, lasts in self._attributes(node)]
        self._add_all(attributes, _ATTRIBUTE, *self._reach(node))
        for statement in body:
            if not isinstance(statement, Function) or self.is_relevant(statement):
                yield statement

    def enter_function(self, node: Function) -> None:
        """Note names of a function, also of inner ones, that represent a word: `c = torch.cuda`."""
        if not self.is_relevant(node):
            return
        start, end = self._reach(node)
        given = list(_names_given(node))
        known: set[tuple[str, bool]] = set()
        bound = _WALRUS.findall(self._text, start, end) if self._has_walrus else ()
        new = {(name, True) for name in bound}
        for _ in range(_MAX_TURNS):
            new |= {(name, self._lasts(v)) for name, v in given if self._represents_word(v)}
            new -= known
            if not new:
                return
            self._add_all(new, _WORD, start, end)
            known |= new
        self._add({name for name, _ in given}, _WORD, True, start, end)

    def _add_all(
        self, words: Iterable[tuple[str, bool]], pattern: re.Pattern[str], start: int, end: int
    ) -> None:
        """Take up words of a part of the text, each with whether it is a lasting one."""
        split: tuple[set[str], set[str]] = (set(), set())
        for word, lasts in words:
            split[lasts].add(word)
        self._add(split[False], pattern, False, start, end)
        self._add(split[True], pattern, True, start, end)

    def _add(
        self, words: set[str], pattern: re.Pattern[str], lasts: bool, start: int, end: int
    ) -> None:
        if not words:
            return
        text = self._text
        if len(words) > _MANY:
            found = {m.start() for m in pattern.finditer(text, start, end) if m.group() in words}
        else:
            found = {place for word in words for place in _places(text, word, start, end)}
        for places in (self._places, self._lasting) if lasts else (self._places,):
            first, last = bisect_left(places, start), bisect_left(places, end)
            places[first:last] = sorted(found.union(places[first:last]))

    def is_relevant(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a word, or a name that represents one, is in the lines of a statement."""
        return _is_between(self._places, *self._reach(node))

    def _attributes(self, node: ast.ClassDef) -> Iterator[tuple[str, bool]]:
        """Attributes that get a word or an annotated argument, and whether their results matter."""
        for method in node.body:
            if isinstance(method, (ast.Assign, ast.AnnAssign)) and self._represents_word(method):
                targets = method.targets if isinstance(method, ast.Assign) else [method.target]
                lasts = self._lasts(method)
                yield from ((name, lasts) for target in targets for name in target_names(target))
            if not isinstance(method, Function) or not self.is_relevant(method):
                continue
            first = next(iter([*method.args.posonlyargs, *method.args.args]), None)
            header = self._starts[method.lineno - 1], self._starts[method.body[0].lineno - 1]
            in_header = _is_between(self._places, *header)
            for statement in inner_statements(method.body):
                if first is None or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                    continue
                is_argument = in_header and isinstance(statement.value, ast.Name)
                if is_argument or self._represents_word(statement):
                    lasts = is_argument or self._lasts(statement)
                    yield from ((name, lasts) for name in stored_by(statement, first.arg))

    def _lasts(self, node: ast.stmt | ast.expr) -> bool:
        return _is_between(self._lasting, *self._reach(node))

    def _represents_word(self, node: ast.stmt | ast.expr) -> bool:
        """Whether what a name is given may be what a rule is about, and is no tensor."""
        reach = self._reach(node)
        if _is_between(self._lasting, *reach):
            return True
        if not _is_between(self._places, *reach):
            return False
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else node
        return not _is_computed(value)

    def _reach(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """From where to where the lines of a statement go."""
        decorators = getattr(node, "decorator_list", None)
        first = decorators[0].lineno if decorators else node.lineno
        last = node.end_lineno or node.lineno
        end = self._starts[last] if last < len(self._starts) else len(self._text)
        return self._starts[first - 1], end


_Given = Iterator[tuple[str, ast.stmt | ast.expr]]


def _names_given(function: Function) -> _Given:
    """The names that a function binds, those in functions inside of it included, with to what."""
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        if isinstance(node, Function):
            yield from _parameters(node.args)
        if isinstance(node, (Function, ast.ClassDef)) and node is not function:
            yield node.name, node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from ((name, node) for target in node.targets for name in target_names(target))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            yield from ((name, node) for name in target_names(node.target))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from ((name, node.iter) for name in target_names(node.target))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from ((name, node.context_expr) for name in target_names(node.optional_vars))
        for name in _PARTS:
            pending += getattr(node, name, ())


_PARTS = ("body", "orelse", "finalbody", "handlers", "cases", "items")
"""Where statements have others, exception handlers, cases and context managers."""


def _is_computed(node: ast.AST | None) -> bool:
    """Whether a value is the result of a calculation; `partial` and others pass on functions."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_computed(element) for element in node.elts)
    if isinstance(node, ast.IfExp):
        return _is_computed(node.body) and _is_computed(node.orelse)
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", getattr(node.func, "id", "partial")) != "partial"
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.AugAssign))


def _is_between(places: Sequence[int], start: int, end: int) -> bool:
    index = bisect_left(places, start)
    return index < len(places) and places[index] < end


def _parameters(arguments: ast.arguments) -> _Given:
    """Parameters with their defaults and annotations."""
    for parameter, default in parameters_of(arguments):
        for given in (default, parameter.annotation):
            if given is not None:
                yield parameter.arg, given


def _places(text: str, word: str, start: int = 0, end: int = sys.maxsize) -> Iterator[int]:
    """Where a word is alone; behind one with a dot before it, anything may be."""
    anywhere = word in _ANYWHERE
    inner = word.startswith(".")
    at = text.find(word, start, end)
    while at >= 0:
        after = at + len(word)
        if anywhere or (
            not is_part_of_word(text[after : after + 1])
            and (inner or at == 0 or not is_part_of_word(text[at - 1]))
        ):
            yield at
        at = text.find(word, after, end)


def _is_named(text: str, at: int) -> bool:
    """Whether a word is an attribute or a string, by what is before it."""
    before = text[at - 1 : at]
    if before.isspace():  # `torch.nn. \` and so on
        before = text[max(at - 100, 0) : at].rstrip(" \t\r\n\\")[-1:]
        return before == "."
    return before in _NAMED_BY
