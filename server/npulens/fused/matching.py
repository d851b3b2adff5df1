"""Finds a pattern in a graph: same computation, whatever the order and grouping of terms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from npulens.fused.patterns import Pattern
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    INPUT,
    OPAQUE,
    SELECT,
    Node,
    number,
    reachable,
    stripped,
)

_MAX_STEPS = 3_000
"""Comparisons of two nodes for one pattern at one place."""
_SAME_DIGITS = 4e-6
_ASSOCIATIVE = frozenset({"add", "multiply"})
_PLACED = frozenset({"apply", "rand", OPAQUE})
"""Nodes whose label says where they are and not what they are."""


class Match(NamedTuple):
    """A pattern found.

    Attributes:
        pattern: The pattern.
        bound: What its variables represent, without operators that are looked through.
        consumed: The nodes that it computes itself, which the replacement makes needless.
        argument_casts: For a variable of a pattern that keeps types, the cast of parts of it.
        result_cast: The outermost cast of what such a pattern computes.
        outer: What its variables represent as the code has it.
        is_cast_back: The result is cast, here or where the code uses it.
    """

    pattern: Pattern
    bound: dict[str, Node]
    consumed: frozenset[Node]
    argument_casts: Mapping[str, Node]
    result_cast: Node | None
    outer: dict[str, Node]
    is_cast_back: bool = False


class _State(NamedTuple):
    bound: dict[str, Node]
    consumed: tuple[Node, ...]
    casts: tuple[tuple[Node, Node], ...] = ()
    """Casts that were looked through, each with what was wanted there, outer ones first."""


def matches(pattern: Pattern, node: Node) -> Iterator[Match]:
    """The ways in which a node computes a pattern: `a * b` binds two variables in two ways."""
    search = _Search(pattern)
    for state in search.match(pattern.root, node, _State({}, ())):
        consumed = frozenset(state.consumed)
        if pattern.keeps_types:
            yield Match(pattern, state.bound, consumed, *_casts(state), state.bound)
            continue
        bound = {name: search.stripped(value) for name, value in state.bound.items()}
        yield Match(pattern, bound, consumed, {}, None, state.bound)


def _casts(state: _State) -> tuple[dict[str, Node], Node | None]:
    """Casts of arguments by variable, and the cast of the result.

    What depends on one variable is a part of an argument, moved about and not computed with; which
    way it is moved may be chosen by another.
    """
    arguments: dict[str, Node] = {}
    result: Node | None = None
    for wanted, cast in state.casts:
        chosen = {choice.operands[0] for choice in reachable(wanted) if choice.operator == SELECT}
        found = {node for node in reachable(wanted) if node.operator == INPUT} - chosen
        variables = {str(node.label) for node in found}
        if len(variables) > 1:
            result = result or cast
        else:
            arguments.update(dict.fromkeys(variables, cast))
    needed = {
        name: cast
        for name, cast in arguments.items()
        if state.bound[name].operator != "cast" and not is_type_of(cast, state.bound[name])
    }
    return needed, result


def is_type_of(cast: Node, tensor: Node) -> bool:
    """Whether a cast is one to the type of a tensor."""
    if len(cast.operands) != 2:
        return False
    target = cast.operands[1]
    of = target.operands[0] if target.operator == ATTRIBUTE else target
    return stripped(of, {"cast"}) is tensor


class _Search:
    def __init__(self, pattern: Pattern) -> None:
        self.transparent = pattern.transparent
        self.left = _MAX_STEPS

    def stripped(self, node: Node) -> Node:
        return stripped(node, self.transparent)

    def match(self, wanted: Node, found: Node, state: _State) -> Iterator[_State]:
        """All ways in which a node computes what is wanted."""
        self.left -= 1
        if self.left < 0:
            return
        if wanted.operator == INPUT:
            yield from self._variable(str(wanted.label), found, state)
            return
        while found.operator in self.transparent and found.operator != wanted.operator:
            state = state._replace(consumed=(*state.consumed, found))
            if found.operator == "cast":
                state = state._replace(casts=(*state.casts, (wanted, found)))
            found = found.operands[0]
        if wanted.operator == CONSTANT:
            if _same_constant(wanted, found):
                yield state
            return
        if wanted.operator != found.operator:
            return
        if wanted.label != found.label and wanted.operator not in _PLACED:
            return
        state = state._replace(consumed=(*state.consumed, found))
        if wanted.operator in _ASSOCIATIVE:
            yield from self._terms(wanted, found, state)
        elif len(wanted.operands) == len(found.operands):
            yield from self._all(wanted.operands, found.operands, state)

    def _variable(self, name: str, found: Node, state: _State) -> Iterator[_State]:
        before = state.bound.get(name)
        state = state._replace(consumed=(*state.consumed, *self._looked_through(found)))
        if before is None:
            yield state._replace(bound={**state.bound, name: found})
        elif self.stripped(before) is self.stripped(found):
            if before.operator == "cast" or found.operator != "cast":
                yield state
            else:
                yield state._replace(bound={**state.bound, name: found})

    def _all(
        self, wanted: Sequence[Node], found: Sequence[Node], state: _State
    ) -> Iterator[_State]:
        if not wanted:
            yield state
            return
        for after in self.match(wanted[0], found[0], state):
            yield from self._all(wanted[1:], found[1:], after)

    def _terms(self, wanted: Node, found: Node, state: _State) -> Iterator[_State]:
        """A sum or product, in any order and grouping."""
        terms = sorted(_flattened(wanted), key=_freedom)
        for parts, joined in self._cuts(found, wanted.operator, len(terms)):
            inner = state._replace(consumed=(*state.consumed, *joined))
            yield from self._assigned(terms, parts, inner)

    def _assigned(
        self, wanted: Sequence[Node], found: tuple[Node, ...], state: _State
    ) -> Iterator[_State]:
        if not wanted:
            yield state
            return
        for index, part in enumerate(found):
            rest = found[:index] + found[index + 1 :]
            for after in self.match(wanted[0], part, state):
                yield from self._assigned(wanted[1:], rest, after)

    def _cuts(
        self, node: Node, operator: str, count: int
    ) -> Iterator[tuple[tuple[Node, ...], tuple[Node, ...]]]:
        """The ways to read a nested sum as one of so many terms, with the nodes that join them."""
        self.left -= 1
        if self.left < 0:
            return
        if count == 1:
            yield (node,), ()
            return
        inner = self.stripped(node)
        if inner.operator != operator:
            return
        left, right = inner.operands
        for share in range(1, count):
            for first, joined in self._cuts(left, operator, share):
                for second, more in self._cuts(right, operator, count - share):
                    through = self._looked_through(node)
                    yield first + second, (*through, inner, *joined, *more)

    def _looked_through(self, node: Node) -> Iterator[Node]:
        while node.operator in self.transparent:
            yield node
            node = node.operands[0]


def _flattened(node: Node) -> list[Node]:
    terms: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if current.operator == node.operator:
            pending += current.operands
        else:
            terms.append(current)
    return terms


def _freedom(term: Node) -> tuple[int, int]:
    """Constants first, then what has structure, then variables: the least that can go wrong."""
    if term.operator == CONSTANT:
        return 0, 0
    return (2, 0) if term.operator == INPUT else (1, -len(term.operands))


def _same_constant(wanted: Node, found: Node) -> bool:
    """Numbers are the same up to the digits people write of `math.sqrt(2)`: 1.41421."""
    if found.operator != CONSTANT:
        return False
    a, b = number(wanted), number(found)
    if a is None or b is None:
        return wanted.label == found.label
    return abs(a - b) <= _SAME_DIGITS * max(abs(a), abs(b))
