"""How a value can be written at a place of a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from npulens.graphs.frames import Evaluated
from npulens.graphs.modules import INSTANCE
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    GLOBAL,
    OPAQUE,
    SELECT,
    Node,
    is_constant,
    number,
    reachable,
)
from npulens.syntax.parsing import expression_tree
from npulens.syntax.walking import nodes_below

_Atom = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant | ast.Tuple | ast.List


class Sources:
    """Writes values with what names represent at one place.

    What is computed in code that will be removed may be written again.
    """

    def __init__(
        self,
        record: Evaluated,
        names: Mapping[str, Node],
        removed: set[ast.AST],
        source: Callable[[ast.expr], str],
    ) -> None:
        self._record = record
        self._names = names
        self._removed = removed
        self._source = source

    def of(self, node: Node) -> str | None:
        """An expression for a value, `None` if there is none at this place."""
        if node.operator == CONSTANT:
            return repr(node.value)
        for name, value in self._names.items():
            if value is node:
                return name
        if node.operator == GLOBAL and "." not in str(node.label):
            return None if node.label in self._names else str(node.label)
        if node.operator == ATTRIBUTE:
            owner = self.of(node.operands[0])
            # A module that is made here would be made once more for each of its attributes.
            is_made = node.operands[0].operator == INSTANCE and owner not in self._names
            return None if owner is None or is_made else f"{owner}.{node.label}"
        written = self._written(node) or self._composed(node) or self._item(node)
        return written or self._turned_back(node)

    def where_given(self, given: Node) -> Sources:
        """The same, for code that only runs where something is not `None`."""
        names = {name: _of_given(value, given) for name, value in self._names.items()}
        return Sources(self._record, names, self._removed, self._source)

    def of_given(self, given: Node) -> str | None:
        """An expression that is `None` just where something is."""
        written = self.of(given)
        for name, value in self._names.items():
            if written is None and _of_given(value, given) is not value:
                other = value.operands[1]
                written = name if other is given or is_constant(other, None) else None
        return written

    def _written(self, node: Node) -> str | None:
        """An expression of the function that has this value and would have it here."""
        for place, value, _ in self._record.places:
            if not isinstance(place, ast.expr) or value is not node:
                continue
            if place not in self._removed and is_costly(value):
                continue
            if all(self._is_unchanged(n) for n in nodes_below(place) if isinstance(n, ast.Name)):
                text = self._source(place)
                return text if "\n" not in text and "#" not in text else None
        return None

    def _turned_back(self, node: Node) -> str | None:
        """A tensor of which only the transposed one has a name."""
        for name, value in self._names.items():
            if value.operator == "transpose" and value.operands[0] is node:
                dimensions = [self.of(operand) for operand in value.operands[1:]]
                return f"{name}.transpose({', '.join(map(str, dimensions))})"
        return None

    def _item(self, node: Node) -> str | None:
        """The name of an item in a comprehension: code outside has no such value."""
        if not (isinstance(node.label, tuple) and node.label[:1] == ("item",)):
            return None
        return next((name.id for name, value in self._record.values.items() if value is node), None)

    def _is_unchanged(self, name: ast.Name) -> bool:
        """Whether a name means here what it meant where it was read."""
        before = self._record.values.get(name)
        return before is self._names.get(name.id)

    def _composed(self, node: Node) -> str | None:
        """An expression put together anew."""
        template = _TEMPLATES.get(node.operator)
        if node.operator == "reshape" and number(node.operands[1]) == -1:
            template = "{}.reshape({})" if len(node.operands) == 2 else None
        if template is None or (
            node.operator in ("power", "unsqueeze") and number(node.operands[1]) is None
        ):
            return None
        if node.operator == SELECT and not any(is_constant(o, 1) for o in node.operands[1:]):
            return None  # anything but a factor that is one in one case
        parts = [part for part in map(self.of, node.operands) if part is not None]
        if len(parts) < len(node.operands):
            return None
        first, *others = parts
        if node.operator in ("add", "multiply"):
            others = list(map(atom, others))
        return template.format(atom(first), *others)


_TEMPLATES = {
    "add": "({} + {})",
    "multiply": "({} * {})",
    "power": "{} ** {}",
    "is_none": "{} is None",
    SELECT: "{1} if {0} else {2}",
    "logical_not": "~{}",
    "transpose": "{}.transpose({}, {})",
    "unsqueeze": "{}.unsqueeze({})",
}


def _of_given(value: Node, given: Node) -> Node:
    """What `y = f(x) if x is not None else x` is where x is given."""
    if value.operator == SELECT:
        condition, _, other = value.operands
        if condition.operator == "is_none" and condition.operands[0] is given:
            return other
    return value


def is_costly(node: Node) -> bool:
    """Whether computing a value twice would be felt, or could do something else."""
    return any(inner.operator in ("apply", OPAQUE, "matmul", "linear") for inner in reachable(node))


def atom(text: str) -> str:
    """An expression that can be an operand or precede a dot."""
    tree = expression_tree(text)
    if isinstance(tree, _Atom) and not text.startswith("-"):
        is_number = isinstance(tree, ast.Constant) and isinstance(tree.value, int)
        return f"({text})" if is_number else text
    return text if _is_enclosed(text, tree) else f"({text})"


def _is_enclosed(text: str, tree: ast.expr) -> bool:
    """Whether brackets enclose all of it."""
    return text.startswith("(") and text.endswith(")") and tree.col_offset > 0
