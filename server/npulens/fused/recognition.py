"""Finds what NPU operators can replace in one segment of a module."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, MigrationStyle, Related
from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.fused_answers import Idiom, Recognition
from npulens.fused.known_activations import names_another
from npulens.fused.known_patterns import known_patterns
from npulens.fused.matching import Match, is_type_of, matches
from npulens.fused.pattern_conditions import CONDITIONS
from npulens.fused.relations import RELATIONS
from npulens.fused.removal import needless_statements
from npulens.fused.rewriting import Place, Rewriter
from npulens.graphs.definitions import FunctionHere
from npulens.graphs.frames import Evaluated
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import TUPLE, Node, number, stripped
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_TURNED = frozenset({"cast", "contiguous", "transpose", "permute"})
"""Around what may be recognised all the same, if a pattern looks through them."""
_MOST_LOOKS = 200
"""Of one function: so often other uses of the parts of a match are looked up."""


class Recognizer:
    """Looks for patterns in the functions of one segment.

    Args:
        lines: The text of the segment; its trees count in it.
        module: The module.
        configured: What configurations say by default, by their attributes.
    """

    def __init__(
        self, lines: LineMap, module: AnalysedModule, configured: Mapping[str, str]
    ) -> None:
        self._lines = lines
        self._definitions = module.definitions.all
        self._elsewhere = module.elsewhere
        self._evaluator = Evaluator(self._definitions, configured, module.elsewhere)
        self._configured = configured
        self._only_infers = module.target.project.only_infers
        self._catalogue = module.catalogue
        self._style = module.target.style
        self._looks_left = 0
        self._by_operator = known_patterns(module.catalogue.patterns)

    def recognize(self, function: FunctionHere) -> Recognition:
        """What is found in a function of the segment."""
        found: list[Idiom] = []
        inlined: set[tuple[ast.AST, str]] = set()
        start = self._lines.starts[function.node.lineno - 1]
        # What is noted of a parameter must not count for one of the same name elsewhere.
        evaluator = Evaluator(self._definitions, self._configured, self._elsewhere)
        evaluator.take_names_of(self._evaluator)
        self._evaluator = evaluator
        self._looks_left = _MOST_LOOKS
        record = self._evaluator.evaluate(function)
        for place in [] if record is None else self._places(record):
            assert record is not None
            rule = place.match.pattern.rule
            inlined.update((node, rule) for node in record.inlined)
            findings = self._finding(record, place)
            found += (Idiom(function.node, rule, f.shifted(-start)) for f in findings)
        return Recognition(tuple(found), frozenset(inlined), frozenset(self._evaluator.visited))

    def _places(self, record: Evaluated) -> list[Place]:
        """Where patterns are found in a function, the larger where they overlap."""
        self._evaluator.focus(record.function)
        found_at: dict[Node, Place] = {}
        helped = self._results_of_own_calls(record)
        own = {node for node, _, _ in record.places if self._is_call_of_own(node, record)}
        for node, value, statement in record.places:
            is_own = isinstance(node, ast.Call) and self._is_own_call(node, record)
            fitting = (
                found
                for found in self._matches(value, statement in record.without_gradient)
                if not (found.pattern.is_configured and names_another(node))
                and self._is_alone(found, node, record)
            )
            found = next(fitting, None)
            root = value if found is None else stripped(value, found.pattern.transparent)
            if found is None:
                continue
            if (is_own or root in helped) and not _is_computed_here(found, root, record, own):
                continue  # the function that computes all of it is looked at by itself
            keeps = found.pattern.keeps_types
            if root not in found_at or (not keeps and _ends_with_cast_back(value, found)):
                rule = found.pattern.rule
                others = tuple(other for other in fitting if other.pattern.rule == rule)
                found_at[root] = Place(node, statement, found, others)
        chosen: list[Place] = []
        consumed: set[Node] = set()
        for root, place in sorted(found_at.items(), key=_order):
            rule = place.match.pattern.rule
            makes_room = place.match.pattern.yields and any(
                other.match.pattern.rule == rule and other.match.consumed <= place.match.consumed
                for other in chosen
            )
            if not _is_among(root, consumed) and not makes_room:
                chosen.append(place)
                consumed |= place.match.consumed
        return chosen

    def _results_of_own_calls(self, record: Evaluated) -> set[Node]:
        """What functions of the project return to a function, casts left away."""
        results: set[Node] = set()
        for node, value, _ in record.places:
            if isinstance(node, ast.Call) and self._is_own_call(node, record):
                parts = value.operands if value.operator == TUPLE else (value,)
                results.update(stripped(part, {"cast", "contiguous"}) for part in parts)
        return results

    def _is_call_of_own(self, node: ast.AST, record: Evaluated) -> bool:
        return isinstance(node, ast.Call) and self._is_own_call(node, record)

    def _is_own_call(self, node: ast.Call, record: Evaluated) -> bool:
        """Whether a call is one of a function or method of this file, or of another module."""
        if node in self._evaluator.led_elsewhere:
            return True
        owner = record.function.owner
        match node.func:
            case ast.Name(name):
                return name in self._definitions.functions or name in record.nested
            case ast.Attribute(ast.Name(name), method) if name == record.function.receiver:
                found = owner and self._elsewhere.method(self._definitions, owner, method)
                return found is not None
            case ast.Attribute(ast.Name(name), method):
                of = self._definitions.classes.get(name)
                return of is not None and method in of.methods
        return False

    def _matches(self, value: Node, without_gradient: bool) -> Iterator[Match]:
        inner = stripped(value, {"cast", "contiguous"})
        turned = stripped(inner, _TURNED)
        for operator in dict.fromkeys((value.operator, inner.operator, turned.operator)):
            for known in self._by_operator.get(operator, ()):
                if known.traits & ~value.traits:
                    continue  # it has operators that are not in this value
                pattern = known.pattern
                if pattern.without_gradient and not (without_gradient or self._only_infers):
                    continue
                found = next(filter(self._holds, matches(pattern, value)), None)
                if found is not None:
                    yield found

    def _holds(self, found: Match) -> bool:
        for names, conditions in found.pattern.conditions.items():
            nodes = [found.bound[name] for name in names.split(", ") if name in found.bound]
            if nodes and not all(self._meets(condition, nodes) for condition in conditions):
                return False
        return True

    def _meets(self, condition: str, nodes: Sequence[Node]) -> bool:
        relation = RELATIONS.get(condition)
        if relation is not None:
            return relation(nodes, self._evaluator)
        return all(CONDITIONS[condition](node, self._evaluator.initial) for node in nodes)

    def _is_alone(self, found: Match, place: ast.expr | ast.stmt, record: Evaluated) -> bool:
        """Whether nothing else wants those parts of a match that would not be computed any more."""
        pattern = found.pattern
        parts = {node for node in found.consumed if node.operator in pattern.exclusive}
        if not parts:
            return True
        if self._looks_left == 0:
            return False
        self._looks_left -= 1
        inside: set[ast.AST] = set(nodes_below(place))
        for statement in needless_statements(record, place, found.consumed):
            inside.update(nodes_below(statement))
        return all(node in inside for node, value, _ in record.places if value in parts)

    def _finding(self, record: Evaluated, place: Place) -> Iterator[Finding]:
        pattern = place.match.pattern
        name = "almost-fused" if pattern.almost is not None else pattern.rule
        rule = self._catalogue.rule_named(name)
        if rule is None:
            return
        rewriter = Rewriter(self._evaluator, record, self._lines)
        agnostic = self._style is MigrationStyle.DEVICE_AGNOSTIC
        preferred = MigrationStyle.DEVICE_AGNOSTIC if agnostic else MigrationStyle.NPU
        fixes = sorted(rewriter.fixes(place), key=lambda fix: fix.style is not preferred)
        related = tuple(
            Related(self._lines.span(statement), message("fix.part-of-computation"))
            for statement in _statements_of(record, place)
        )
        shown = " ".join(rewriter.source(place.node).split())
        yield Finding(
            rule,
            self._lines.span(place.node),
            {"symbol": shown, "replacement": pattern.operator},
            pattern.almost or pattern.check,
            tuple(fixes),
            related=related,
        )


def _is_computed_here(
    found: Match, root: Node, record: Evaluated, own: Collection[ast.AST]
) -> bool:
    """Whether a function computes some of a match itself, and another one the rest."""
    parts = {
        part
        for part in found.consumed - {root}
        if part.operands and part.operator not in found.pattern.transparent
    }
    return any(value in parts and node not in own for node, value, _ in record.places)


def _is_among(root: Node, consumed: set[Node]) -> bool:
    """Whether a value, or that of which it is the negative, belongs to a larger match."""
    is_negative = root.operator == "multiply" and number(root.operands[0]) == -1
    return root in consumed or (is_negative and root.operands[1] in consumed)


def _order(match: tuple[Node, Place]) -> tuple[bool, int]:
    """Larger matches first, those that make room last."""
    return match[1].match.pattern.yields, -len(match[1].match.consumed)


def _ends_with_cast_back(value: Node, found: Match) -> bool:
    """Whether a place casts the result back to the type of an input, as the operator does."""
    value = stripped(value, {"contiguous"})
    return value.operator == "cast" and any(is_type_of(value, b) for b in found.bound.values())


def _statements_of(record: Evaluated, place: Place) -> list[ast.stmt]:
    """The other statements that compute parts of a match, in order."""
    parts: dict[ast.stmt, None] = {}
    for _, value, statement in record.places:
        if value in place.match.consumed and statement is not place.statement:
            parts[statement] = None
    return [part for part in parts if not isinstance(part, (ast.If, ast.For, ast.While, ast.With))]
