"""Which functions can hold a computation that a pattern describes, determined from their text."""

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.segment import Segment
from npulens.fused.parts import Needs, Part, Reach
from npulens.graphs.definitions import (
    ClassHere,
    FunctionHere,
    inner_statements,
    nested_function,
    stored_attributes,
    stored_by,
)
from npulens.syntax.bindings import Function, target_names, with_defaults
from npulens.syntax.docstrings import docstring_of
from npulens.syntax.walking import names_in
from npulens.syntax.words import Words
from npulens.text.late_patterns import late
from npulens.text.lines import LineMap

_NPU_CHOICE = late(
    r"torch_npu_available|(?<![a-z\"'])(?<!torch_)(?<!is_)npu(?!_\w+\(|lens|\d{3})(?:(?=\w)|(?<!\.npu))"
    r"|\btype\s*==\s*[\"']npu\b",
    re.IGNORECASE,
)
"""The code checks for the NPU, which is more than moving data there or calling an operator."""
_AROUND_MODELS = late(
    r"_pretrained(?:_model)?\Z|\Aconvert_|post_process|preprocess|(?:training|evaluation|prediction)_loop"
)
"""Functions that load, store, convert or drive models, or work on what goes in and comes out."""
_LONGEST_LINE = 200
_ATTRIBUTE = late(r"\.(\w+)")


Places = Sequence[tuple[int, str]]
"""Offsets in a text, in order, each with the word that is there."""
Parts = Mapping[str, Part]
"""What of a module holds words of patterns, by its names."""


def word_places(words: Words, searched: tuple[str, ...]) -> Places:
    """Where words of patterns are; not inside others, as in `interface`, nor in comments."""
    text = words.text
    return sorted(
        (place, word)
        for word in words.some_of(searched)
        for place in words.places(word)
        if not (word[0].islower() and text[place - 1 : place].islower())
        and not _is_in_comment(text, place)
    )


def _is_in_comment(text: str, place: int) -> bool:
    """Whether a line begins with a comment before a place."""
    line = text[max(0, place - _LONGEST_LINE) : place].rpartition("\n")[2]
    return line.lstrip().startswith("#")


def parts_in(body: Iterable[ast.stmt], lines: LineMap, places: Places) -> Parts:
    """Functions and classes at the top of a segment that hold a word of a pattern."""
    parts = {}
    for node in body:
        name = defined_name(node)
        if name is None:
            continue
        reaches = list(_code_of(node, lines))
        words = _words_in(places, reaches)
        if words:
            parts[name] = Part(words, lines.text, reaches)
    return parts


def defined_name(node: ast.stmt) -> str | None:
    """The name of the function or class that a statement defines, also by a lambda."""
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return name
        case ast.Assign([ast.Name(name)], ast.Lambda()):
            return name
    return None


class Candidates:
    """The functions of one segment that are worth evaluating.

    Args:
        segment: The segment.
        module: The module.
        places: Where words of patterns occur in the text.
        helpers: Functions of the project that hold some, by names of the module.
        part_of: What a class holds of them.
        needs: What code holds that can match.
    """

    def __init__(
        self,
        segment: Segment,
        module: AnalysedModule,
        places: Places,
        helpers: Parts,
        part_of: Callable[[ClassHere], Part | None],
        needs: Needs,
    ) -> None:
        words, self._lines = segment.words, segment.parsed.lines
        self._text = self._lines.text
        self._definitions, self._elsewhere = module.definitions.all, module.elsewhere
        self._places = places
        self._helpers = helpers
        self._part_of = part_of
        self._calls = sorted((at, name) for name in helpers for at in _places_of(words, name))
        self._needs = needs
        self._names_npu = bool(segment.npu_words)

    def among(self, body: Sequence[ast.stmt]) -> Iterator[FunctionHere]:
        """Functions that hold a word of a pattern, or use something of the module that does."""
        for node in body:
            if isinstance(node, ast.ClassDef):
                owner = self._definitions.classes.get(node.name)
                if owner is not None and owner.node is node and self._has_part(node):
                    yield from self._methods(owner)
            elif isinstance(node, Function):
                function = self._definitions.functions.get(node.name)
                if function is not None and function.node is node and self._is_one(node, (), ()):
                    yield from _with_nested(function)

    def _methods(self, owner: ClassHere) -> Iterator[FunctionHere]:
        members, attributes = self._members(owner), self._attributes(owner)
        is_using = bool(members or attributes)
        for name, method in owner.methods.items():
            if name == "__init__":
                yield from self._defined_in(method)
            else:
                reach = _reach(method.node, self._lines)
                names = set(_ATTRIBUTE.findall(self._text, *reach)) if is_using else set()
                inside = [attributes[each] for each in names & attributes.keys()]
                others = [members[each] for each in names & members.keys()]
                if self._is_one(method.node, inside, others):
                    yield from _with_nested(method)

    def _defined_in(self, constructor: FunctionHere) -> Iterator[FunctionHere]:
        """Functions that a constructor defines, to store one of them."""
        for node in inner_statements(constructor.node.body):
            if isinstance(node, ast.FunctionDef) and self._is_one(node, (), ()):
                yield from _with_nested(nested_function(node, constructor))

    def _is_one(self, node: Function, inside: Sequence[Part], others: Sequence[Part]) -> bool:
        """Whether a function may match, with what it uses.

        The computation of what is inside is its own; others are looked through by themselves.
        """
        if _AROUND_MODELS.search(node.name) is not None:
            return False
        own = self._own(node, inside)
        helpers = self._helpers_in(node)
        others = [part for name, part in helpers.items() if name != node.name] + [*others]
        if not (own.words or others) or not self._needs.may_match(own, others):
            return False
        # Or it has a way for the NPU already.
        reach = _reach(node, self._lines)
        return not self._names_npu or _NPU_CHOICE.search(self._text, *reach) is None

    def _own(self, node: ast.stmt | ast.expr, others: Iterable[Part] = ()) -> Part:
        reaches = list(_code_of(node, self._lines))
        return Part(_words_in(self._places, reaches), self._text, reaches, others)

    def _with_helpers(self, node: ast.stmt | ast.expr, others: Iterable[Part] = ()) -> Part:
        return self._own(node, [*self._helpers_in(node).values(), *others])

    def _helpers_in(self, node: ast.stmt | ast.expr) -> Parts:
        names = _words_in(self._calls, _code_of(node, self._lines))
        return {name: self._helpers[name] for name in names}

    def _has_part(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a word or a helper is in a node."""
        reaches = list(_code_of(node, self._lines))
        return any(_is_between(p, *r) for p in (self._places, self._calls) for r in reaches)

    def _members(self, owner: ClassHere) -> dict[str, Part]:
        """Methods of `self` that may bring a part of a computation."""
        members = {name: part for base, part in self._bases(owner) for name in base.methods}
        for name, method in owner.methods.items():
            if self._has_part(method.node):
                members[name] = self._with_helpers(method.node)
        return members

    def _attributes(self, owner: ClassHere) -> dict[str, Part]:
        """Attributes of `self` whose value names a part; what they compute, their users do."""
        attributes = {
            name: part
            for base, part in self._bases(owner)
            if "__init__" in base.methods
            for name in stored_attributes(base.methods["__init__"])
        }
        if "__init__" in owner.methods:
            attributes.update(self._constructed(owner.methods["__init__"]))
        return attributes

    def _bases(self, owner: ClassHere) -> list[tuple[ClassHere, Part]]:
        """Base classes with what they hold anywhere: their text may be that of another segment."""
        _, *bases = self._elsewhere.lineage(self._definitions, owner)
        pairs = ((base, self._part_of(base)) for base in bases)
        return [(base, part) for base, part in pairs if part is not None]

    def _constructed(self, constructor: FunctionHere) -> Iterator[tuple[str, Part]]:
        """Attributes whose value names a part, also by way of a parameter or a variable."""
        carried = self._parameters(constructor.node)
        statements = sorted(inner_statements(constructor.node.body), key=lambda s: s.lineno)
        for statement in statements:
            if isinstance(statement, ast.FunctionDef) and self._has_part(statement):
                carried[statement.name] = self._with_helpers(statement)
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                continue
            value = statement.value
            names = names_in(value) if carried and value is not None else ()
            taken = [carried[name] for name in names if name in carried]
            if taken or self._has_part(statement):
                part = self._with_helpers(statement, taken)
                yield from ((name, part) for name in stored_by(statement, constructor.receiver))
                targets = (
                    statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                )
                carried.update((name, part) for target in targets for name in target_names(target))

    def _parameters(self, function: Function) -> dict[str, Part]:
        """Parameters whose default is such a part."""
        return {
            parameter.arg: self._with_helpers(default)
            for parameter, default in with_defaults(function.args)
            if self._has_part(default)
        }


def _places_of(words: Words, name: str) -> Iterator[int]:
    """Where a helper is named; `self.drop_path` is another than `drop_path`."""
    module, _, name = name.rpartition(".")
    for at in words.places_alone(name):
        before = words.text[max(0, at - len(module) - 1) : at]
        if before == f"{module}." if module else before[-1:] != ".":
            yield at


def _with_nested(function: FunctionHere) -> Iterator[FunctionHere]:
    """A function and those defined in it, which are also read by themselves."""
    yield function
    for node in inner_statements(function.node.body):
        if isinstance(node, ast.FunctionDef):
            yield from _with_nested(nested_function(node, function))


def _is_between(places: Places, start: int, end: int) -> bool:
    index = bisect_left(places, (start, ""))
    return index < len(places) and places[index][0] < end


def _words_in(places: Places, reaches: Iterable[Reach]) -> list[str]:
    return [
        word
        for start, end in reaches
        for _, word in places[bisect_left(places, (start, "")) : bisect_left(places, (end, ""))]
    ]


def _code_of(node: ast.stmt | ast.expr, lines: LineMap) -> Iterator[Reach]:
    """What a node reaches over, without the lines of its docstring."""
    start, end = _reach(node, lines)
    text = docstring_of(node)
    if text is not None:
        yield start, lines.offset(text.lineno, 0)
        start = _reach(text, lines)[1]
    yield start, end


def _reach(node: ast.stmt | ast.expr, lines: LineMap) -> Reach:
    """From where to where the text of a node goes, its first line as a whole."""
    start = lines.offset(node.lineno, 0)
    return start, lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
