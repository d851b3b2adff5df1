"""Reads pattern files: pairs of PyTorch functions as expression graphs. They are never executed.

Besides what a file must say it may say more: FORMS names functions of the file that patterns call
and gives for each the functions that it may be, so that one pattern is many; an argument of the
replacement that a form has no value for gets its default, or goes if it is computed. EXCLUSIVE
lists operators whose results must have no other use in the code, since they will not be computed
any more. With YIELDS a match makes room for one inside it. PROVIDED says of each kind of
replacement what must hold for it, where that is not known; each kind becomes a fix of its own.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import product
from operator import or_

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import about, message
from npulens.catalog.model import Applicability, LocalizedText, PatternSource
from npulens.catalog.rule_file import CatalogueError
from npulens.fused.pattern_conditions import CONDITIONS
from npulens.fused.relations import RELATIONS
from npulens.graphs.definitions import Definitions, FunctionHere
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import CONSTANT, INPUT, Node, reachable, trait
from npulens.syntax.bindings import bindings_of, with_defaults
from npulens.syntax.parsing import expression_tree, module_tree
from npulens.syntax.scopes import ModuleNames, ModuleScope
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_PATTERN = "pattern"
_REPLACEMENT = "replacement"
_LEAVES = (INPUT, CONSTANT)
_NAME = re.compile(r"\w+(\.\w+)+")


class PatternError(CatalogueError):
    """A pattern file that breaks the format; the message says where."""


def refused(where: str, name: MessageId, /, **values: object) -> PatternError:
    """What is wrong, and where."""
    return PatternError(about(where, message(name, **values)))


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """What a pattern becomes: one expression over the names of the pattern."""

    text: str
    expression: ast.expr
    """Its positions are in `text`."""
    operator: str
    defaults: Mapping[str, str]
    """What its parameters are where a pattern has none of that name."""
    provided: LocalizedText | None = None
    """What must hold for it and is not known here."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A computation to look for.

    Attributes:
        name: File and function, for messages.
        rule: Code of the rule it belongs to.
        root: The graph of what it computes; inputs are its variables.
        size: How many operators it has.
        traits: The bits of these operators, all of which are in any code that matches.
        applicability: How safe the replacement is.
        transparent: Operators of the user's code that are looked through.
        keeps_types: Casts of arguments and of the result are written again, since the operator
            takes one data type for all and returns it.
        one_type: Variables that the operator wants of one data type, a tensor first.
        may_be_float32: Those of them that it takes in float32 beside any other type.
        one_rank: Variables that it wants of equally many dimensions, a tensor first.
        conditions: Names of conditions on what each variable represents, or several together:
            those of `"gate, up"` are about both.
        check: What the user must check.
        without_gradient: It counts only where no gradients are computed.
        replacement: What to write instead, `None` for a near miss.
        alternatives: What to write instead where something else holds.
        almost: What is in the way of a near miss, else `None`.
        operator: What to use, for messages; of a pattern with no replacement it is only named.
        exclusive: Operators of the pattern whose results must have no other use.
        yields: It makes room for a match inside it.
        choice: The function for each name in FORMS.
    """

    name: str
    rule: str
    root: Node
    size: int
    traits: int
    applicability: Applicability
    transparent: frozenset[str]
    keeps_types: bool
    one_type: Sequence[str]
    may_be_float32: Sequence[str]
    one_rank: Sequence[str]
    conditions: Mapping[str, Sequence[str]]
    check: LocalizedText | None
    without_gradient: bool
    replacement: Replacement | None
    alternatives: tuple[Replacement, ...]
    almost: LocalizedText | None
    operator: str
    exclusive: frozenset[str]
    yields: bool
    choice: Mapping[str, str] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int]:
        """Sorts larger patterns to the front, of equal ones those with more conditions."""
        return -self.size, -len(self.conditions)

    @property
    def is_configured(self) -> bool:
        """Whether a function of it is chosen by a configuration that nobody has read."""
        return any("activation" in conditions for conditions in self.conditions.values())


@lru_cache(maxsize=4)
def read_patterns(sources: tuple[PatternSource, ...]) -> tuple[Pattern, ...]:
    """The patterns of several files, largest first; of equal ones those with more conditions.

    Raises:
        PatternError: A file does not parse or breaks the format.
    """
    patterns = [pattern for source in sources for pattern in patterns_of(source)]
    return tuple(sorted(patterns, key=lambda pattern: pattern.order))


def _parsed(source: PatternSource) -> ast.Module:
    try:
        return module_tree(source.text)
    except (SyntaxError, ValueError) as error:
        reason = str(error)
        raise PatternError(about(source.name, LocalizedText(reason, reason))) from error


def patterns_of(source: PatternSource) -> Iterator[Pattern]:
    """The patterns of a file; fails as `read_patterns` does."""
    module = _parsed(source)
    constants = _constants(module)
    scope = ModuleScope(ModuleNames([bindings_of(module.body, [])]), 0)
    definitions = Definitions()
    definitions.add(module.body, scope)
    forms = constants.get("FORMS", {})
    replacements = _Replacements(source, definitions)
    written: set[tuple[str, str]] = set()
    for choice in _choices(forms, source.name):
        chosen = Definitions()
        chosen.functions = {**definitions.functions}
        for form, name in choice.items():
            if name not in chosen.functions:
                raise refused(source.name, "pattern.no-function", name=name)
            chosen.functions[form] = definitions.functions[name]
        evaluator = Evaluator(chosen)
        for name, function in definitions.functions.items():
            if name == _PATTERN or name.startswith(_PATTERN + "_"):
                root = evaluator.result(function)
                if (repr(root), name) not in written:
                    written.add((repr(root), name))
                    yield _pattern(source, name, root, constants, replacements, choice)


def _choices(forms: object, name: str) -> Iterator[dict[str, str]]:
    """Every way to choose one of its forms for each name."""
    if not isinstance(forms, dict) or not all(isinstance(f, tuple) for f in forms.values()):
        raise refused(name, "pattern.forms")
    for chosen in product(*forms.values()):
        yield dict(zip(forms, chosen, strict=True))


def _constants(module: ast.Module) -> dict[str, object]:
    """The module's upper-case names with their literal values."""
    found: dict[str, object] = {}
    for node in module.body:
        match node:
            case ast.Assign([ast.Name(name), *_], value) if name.isupper():
                with suppress(ValueError):
                    found[name] = ast.literal_eval(value)
    return found


def _pattern(
    source: PatternSource,
    name: str,
    root: Node | None,
    constants: Mapping[str, object],
    replacements: "_Replacements",
    choice: Mapping[str, str],
) -> Pattern:
    where = f"{source.name}: {name}"
    if root is None or root.operator == INPUT:
        raise refused(source.name, "pattern.one-expression", name=name)
    almost = _localized(constants.get("ALMOST"), where)
    kinds = _kinds_of_replacement(constants.get("PROVIDED", {}), source.name)
    found = (
        replacements.of(kind + name[len(_PATTERN) :], provided, kind)
        for kind, provided in kinds.items()
    )
    written = [] if almost else [each for each in found if each is not None]
    replacement = written[0] if written else None
    operator = constants.get("OPERATOR", "" if replacement is None else replacement.operator)
    if almost is None and replacement is None and not operator:
        raise refused(source.name, "pattern.no-replacement", name=name)
    rule, applicability = constants.get("RULE"), constants.get("APPLICABILITY", "unsafe")
    if not isinstance(rule, str):
        raise refused(where, "pattern.rule")
    try:
        how_safe = Applicability(applicability)
    except ValueError as error:
        raise refused(where, "pattern.applicability") from error
    transparent = constants.get("TRANSPARENT", ())
    conditions = constants.get("CONDITIONS", {})
    names = {node.label for node in reachable(root) if node.operator == INPUT}
    exclusive = constants.get("EXCLUSIVE", ())
    if not isinstance(transparent, tuple) or not isinstance(exclusive, tuple):
        raise refused(where, "pattern.tuples")
    if not isinstance(conditions, dict):
        raise refused(where, "pattern.conditions")
    required = {condition for each in conditions.values() for condition in each}
    if unknown := sorted(required - CONDITIONS.keys() - RELATIONS.keys()):
        raise refused(where, "pattern.no-condition", name=repr(unknown[0]))
    return Pattern(
        name=where,
        rule=rule,
        root=root,
        size=sum(1 for node in reachable(root) if node.operands),
        traits=reduce(
            or_, (trait(n.operator) for n in reachable(root) if n.operator not in _LEAVES)
        ),
        applicability=how_safe,
        transparent=frozenset(transparent),
        keeps_types=constants.get("KEEPS_TYPES") is True,
        one_type=_names(constants, "ONE_TYPE", where),
        may_be_float32=_names(constants, "MAY_BE_FLOAT32", where),
        one_rank=_names(constants, "ONE_RANK", where),
        conditions={
            about: conditions[about]
            for about in conditions
            if not names.isdisjoint(about.split(", "))
        },
        check=_localized(constants.get("CHECK"), where),
        without_gradient=constants.get("WITHOUT_GRADIENT") is True,
        replacement=replacement,
        alternatives=tuple(written[1:]),
        almost=almost,
        operator=str(operator),
        exclusive=frozenset(exclusive),
        yields=constants.get("YIELDS") is True,
        choice=choice,
    )


def _names(constants: Mapping[str, object], constant: str, where: str) -> Sequence[str]:
    found = constants.get(constant, ())
    if not isinstance(found, tuple) or not all(isinstance(name, str) for name in found):
        raise refused(where, "pattern.names", constant=constant)
    return found


def _localized(value: object, where: str) -> LocalizedText | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"en", "zh"}:
        raise refused(where, "pattern.text")
    return LocalizedText(str(value["en"]), str(value["zh"]))


def _kinds_of_replacement(provided: object, where: str) -> dict[str, LocalizedText | None]:
    """What the names of replacements start with, each with what must hold for them."""
    if not isinstance(provided, dict):
        raise refused(where, "pattern.provided")
    return {kind: _localized(text, where) for kind, text in provided.items()} or {
        _REPLACEMENT: None
    }


class _Replacements:
    """What the functions of a file write instead; several patterns may share one."""

    def __init__(self, source: PatternSource, definitions: Definitions) -> None:
        self._source = source
        self._lines = LineMap(source.text)
        self._functions = definitions.functions
        self._read: dict[tuple[str, str], Replacement] = {}

    def of(self, name: str, provided: LocalizedText | None, kind: str) -> Replacement | None:
        """The replacement of this name, or else the one of its kind for all patterns."""
        name = name if name in self._functions else kind
        if name not in self._functions:
            return None
        known = self._read.get((name, kind))
        if known is None:
            known = self._read[name, kind] = self._replacement(self._functions[name], provided)
        return known

    def _replacement(self, function: FunctionHere, provided: LocalizedText | None) -> Replacement:
        last = function.node.body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise refused(self._source.name, "pattern.one-expression", name=function.node.name)
        text = _on_one_line(self._source.text[slice(*self._lines.span(last.value))])
        expression = expression_tree(text)
        operator = _operator(expression, function)
        if not operator:
            raise refused(self._source.name, "pattern.calls-nothing", name=function.node.name)
        defaults = {p.arg: ast.unparse(default) for p, default in with_defaults(function.node.args)}
        return Replacement(text, expression, operator, defaults, provided)


def _operator(expression: ast.expr, function: FunctionHere) -> str:
    """What a replacement calls, by its full name: of torch_npu, or else of another module."""
    own = {each.arg for each in ast.walk(function.node.args) if isinstance(each, ast.arg)}
    attributes = [n for n in nodes_below(expression) if isinstance(n, ast.Attribute)]
    names = [name for name in map(ast.unparse, attributes) if _NAME.fullmatch(name)]
    of_modules = [name for name in names if name.partition(".")[0] not in own]
    of_plugin = (name for name in of_modules if name.startswith("torch_npu."))
    return next(of_plugin, None) or next(iter(of_modules), "")


def _on_one_line(text: str) -> str:
    """An expression that a formatter has broken into lines, as if it had been short."""
    joined = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith((")", "]")):
            joined = joined.removesuffix(",")
        elif joined and not joined.endswith(("(", "[")) and not line.startswith("."):
            joined += " "
        joined += line
    return joined
