"""Nodes of expression graphs: equal computations are one node."""

import zlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final

Scalar = int | float | bool | str | None
"""What a constant node holds; other Python constants are leaves."""

CONSTANT: Final = "constant"
INPUT: Final = "input"
ATTRIBUTE: Final = "attribute"
OPAQUE: Final = "opaque"
TUPLE: Final = "tuple"
TABLE: Final = "table"
SELECT: Final = "select"
LIBRARY: Final = "library"
GLOBAL: Final = "global"
AVAILABLE: Final = "available"
SEQUENTIAL: Final = "sequential"

_TRAITS = 96
_LARGEST = 1e30
"""Greater numbers are not computed with: powers of powers would fill the memory."""


@cache
def trait(operator: str) -> int:
    """The bit of an operator."""
    return 1 << zlib.crc32(operator.encode()) % _TRAITS


class Node:
    """One value: an operator applied to operands, or a leaf.

    Nodes are made by a `Graph` only, and compare by identity there.

    Attributes:
        operator: What is computed (`multiply`, `softmax`, ...) or the kind of leaf.
        operands: What it is computed from; arguments that are constants are operands too.
        label: What distinguishes leaves of a kind: the value of a constant, the name of an input
            or attribute, the place of something unknown.
        serial: Its number in its graph; operands of commutative operators are in this order.
        rank: How many dimensions it has, if its use shows that; see `ranks.rank_of`.
        is_named: A name that holds it has been read.
        traits: A bit for each operator in it; different operators may share one.
    """

    __slots__ = ("is_named", "label", "operands", "operator", "rank", "serial", "traits")

    def __init__(
        self, operator: str, operands: tuple["Node", ...], label: object, serial: int
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.label = label
        self.serial = serial
        self.rank: int | None = None
        self.is_named = False
        self.traits = trait(operator)
        for operand in operands:
            self.traits |= operand.traits

    @property
    def value(self) -> Scalar:
        """What a constant holds; only for constants."""
        assert self.operator == CONSTANT
        assert isinstance(self.label, tuple)
        value: Scalar = self.label[1]
        return value

    def __repr__(self) -> str:
        if self.operator == CONSTANT:
            return repr(self.value)
        label = "" if self.label is None else f":{self.label}"
        operands = ", ".join(map(repr, self.operands))
        return f"{self.operator}{label}({operands})" if operands else f"{self.operator}{label}"


class Graph:
    """The nodes of one analysis; requesting the same node twice gives the same object."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Node] = {}

    def node(self, operator: str, operands: tuple[Node, ...] = (), label: object = None) -> Node:
        """The node for an operator applied to operands."""
        key = (operator, label, *[operand.serial for operand in operands])
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(operator, operands, label, len(self._nodes))
        return found

    def constant(self, value: Scalar) -> Node:
        """A number, string, truth value or `None`; `2.0` is `2`, but `True` is not `1`."""
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            value = int(value)
        kind = "number" if type(value) in (int, float) else type(value).__name__
        return self.node(CONSTANT, (), (kind, value))

    def __len__(self) -> int:
        return len(self._nodes)


def number(node: Node) -> int | float | None:
    """The number a node is, `None` if it is not a constant number of sensible size."""
    if node.operator != CONSTANT:
        return None
    value = node.value
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if abs(value) <= _LARGEST else None


def is_constant(node: Node, value: Scalar) -> bool:
    """Whether a node is this very constant."""
    return node.operator == CONSTANT and node.value == value and type(node.value) is type(value)


def is_identity(node: Node) -> bool:
    """Whether a node is a module that gives back what it is given: `nn.Identity()`."""
    return node.operator == SEQUENTIAL and not node.operands


def stripped(node: Node, operators: AbstractSet[str]) -> Node:
    """A node without the outer operators that are looked through."""
    while node.operator in operators:
        node = node.operands[0]
    return node


def entry(table: Node, key: Node) -> Node | None:
    """What a dictionary that is written down has for a key."""
    keys, values = table.operands
    pairs = zip(keys.operands, values.operands, strict=True)
    return next((value for name, value in pairs if name is key), None)


def reachable(node: Node) -> Iterator[Node]:
    """A node and all it is computed from, each once."""
    seen = {node.serial}
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        for operand in current.operands:
            if operand.serial not in seen:
                seen.add(operand.serial)
                pending.append(operand)
