"""Evaluates expressions: Python's operators, PyTorch's functions, methods and modules."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from types import NoneType
from typing import Any

from npulens.graphs.algebra import (
    add,
    divide,
    mean_of_sum,
    multiply,
    negate,
    power,
    subtract,
)
from npulens.graphs.calls import softmax_of_powers
from npulens.graphs.definitions import (
    Definitions,
    FunctionHere,
    lambda_function,
    sibling_function,
)
from npulens.graphs.frames import Closure, Frame, TooLargeError
from npulens.graphs.nodes import (
    ATTRIBUTE,
    AVAILABLE,
    CONSTANT,
    GLOBAL,
    LIBRARY,
    OPAQUE,
    SELECT,
    TABLE,
    TUPLE,
    Graph,
    Node,
    is_constant,
)
from npulens.graphs.other_definitions import OtherDefinitions
from npulens.graphs.pairs import SLICE
from npulens.graphs.permutations import transpose
from npulens.graphs.products import hoisted
from npulens.graphs.scalars import either_filled, either_scaled, filled_last, without_zeros
from npulens.graphs.tensor_views import ELLIPSIS, floor_divide, subscript
from npulens.syntax.meanings import qualified_names
from npulens.syntax.values import dotted_name, root_name
from npulens.syntax.walking import names_in

_MAX_STEPS = 20_000
"""Expressions evaluated for one function, those of functions it calls included."""

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_NUMBERS = {f"{module}.pi": math.pi for module in ("math", "numpy", "torch")}
_WITHOUT_PLACE = frozenset({ast.Attribute, ast.Tuple, ast.List})
"""They compute nothing."""
_OTHER_DEVICES = frozenset({"mps", "xla", "xpu", "hpu", "mlu"})
_TENSOR_FREE = frozenset({"instance", "parameter", "module"})


class Expressions:
    """Values of expressions in a frame; calls are added by the class that knows functions."""

    def __init__(self, graph: Graph, definitions: Definitions, elsewhere: OtherDefinitions) -> None:
        self.graph = graph
        self.definitions = definitions
        self.elsewhere = elsewhere
        self.steps = 0
        self._numbers: dict[int, int] = {}
        self._kept: list[ast.AST] = []
        self._names_of_scopes: dict[tuple[int, str], list[str]] = {}
        self._names_of_modules: dict[tuple[str, str], list[str]] = {}
        self.nested: dict[int, Closure] = {}
        """Functions defined in functions, by the serial of their value."""
        self.listed: dict[int, ast.ListComp | ast.GeneratorExp] = {}
        """Comprehensions, by the serial of theirs."""

    def take_names_of(self, other: Expressions) -> None:
        """Rest on what names of modules meant for another one, with the same definitions."""
        self._names_of_modules = other._names_of_modules

    def number_of(self, node: ast.AST) -> int:
        """A number for a place in the code, the same each time it is evaluated."""
        found = self._numbers.get(id(node))
        if found is None:
            found = self._numbers[id(node)] = len(self._numbers)
            self._kept.append(node)  # its id must stay its own
        return found

    def unknown(self, node: ast.AST, operands: Sequence[Node] = ()) -> Node:
        """A value about which nothing is known but where it comes from."""
        return self.graph.node(OPAQUE, tuple(operands), self.number_of(node))

    def value(self, node: ast.expr, frame: Frame) -> Node:
        """What an expression computes.

        Raises:
            TooLargeError: The function takes too many steps.
        """
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise TooLargeError
        if frame.given and node in frame.given:
            return frame.given[node]
        kind = node.__class__
        if kind is ast.Name or kind is ast.Constant:
            return self.read(node, frame)
        computed = _COMPUTED_BY.get(kind, Expressions._not_followed)
        result = computed(self, node, frame)
        if kind not in _WITHOUT_PLACE:
            frame.place(node, result)
        return result

    def read(self, node: ast.expr, frame: Frame) -> Node:
        """What a name, attribute or constant represents."""
        if isinstance(node, ast.Name):
            frame.load(node)
            found = frame.names.get(node.id)
            if found is not None:
                found.is_named = True
                return found
            known = self.reexported_libraries(node, frame)
            if known:
                return self._imported(known, frame)
            beside = sibling_function(frame.function, node.id)
            if beside is not None:
                return self._beside(beside, frame)
            place = frame.function.place
            return self.graph.node(GLOBAL, (), f"{place}.{node.id}" if place else node.id)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (int, float, str, NoneType)):
                return self.graph.constant(node.value)
            if node.value is ...:
                return self.graph.node(ELLIPSIS)
            return self.unknown(node)
        return self.value(node, frame)

    def _beside(self, function: FunctionHere, frame: Frame) -> Node:
        """A function that is defined beside the one that reads its name."""
        if frame.record is not None:
            frame.record.nested.add(function.node.name)
        value = self.unknown(function.node)
        self.nested.setdefault(value.serial, Closure(function, Frame(function, None)))
        return value

    def reexported_libraries(self, node: ast.expr, frame: Frame) -> list[str]:
        """The full names of what an expression is in a library, `[]` for anything else."""
        name = None if root_name(node) in frame.names else dotted_name(node)
        if name is None:
            return []
        scope = frame.function.scope
        dotted = ".".join((name.root, *name.path))
        if scope.names.get(name.root):
            in_scope = id(scope), dotted
            if in_scope not in self._names_of_scopes:
                self._names_of_scopes[in_scope] = qualified_names(node, scope)
            return self._names_of_scopes[in_scope]
        # What no function around binds means the same everywhere in the file.
        in_module = frame.function.place, dotted
        if in_module not in self._names_of_modules:
            self._names_of_modules[in_module] = qualified_names(node, scope)
        return self._names_of_modules[in_module]

    def _imported(self, names: Sequence[str], frame: Frame) -> Node:
        """What has one of some full names: of another module, or of a library."""
        label = self.label_elsewhere(names, frame)
        if label is not None:
            return self.graph.node(GLOBAL, (), label)
        return self.graph.node(LIBRARY, (), names[0])

    def label_elsewhere(self, names: Sequence[str], frame: Frame) -> str | None:
        """The label of a definition of another module with one of some full names."""
        if self.elsewhere.is_empty or names[0].startswith("torch."):
            return None
        return self.elsewhere.label(names, frame.function.place)

    def _calculation(self, node: ast.BinOp, frame: Frame) -> Node:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self.binary(node.op, left, right)

    def _subscripted(self, node: ast.Subscript, frame: Frame) -> Node:
        owner = self.value(node.value, frame)
        return subscript(self.graph, owner, self.items(node.slice, frame))

    def _choice(self, node: ast.IfExp, frame: Frame) -> Node:
        condition = self.value(node.test, frame)
        chosen, other = self.value(node.body, frame), self.value(node.orelse, frame)
        return self.select(condition, chosen, other)

    def _decision(self, node: ast.BoolOp, frame: Frame) -> Node:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        values = [self.value(value, frame) for value in node.values]
        return self.graph.node(operator, tuple(values))

    def _named(self, node: ast.NamedExpr, frame: Frame) -> Node:
        value = self.value(node.value, frame)
        frame.bind(node.target.id, value)
        return value

    def _each(self, node: ast.ListComp | ast.GeneratorExp, frame: Frame) -> None:
        """Look into what is computed for each item of something."""
        generator = node.generators[0]
        target = generator.target
        if len(node.generators) > 1 or not isinstance(target, ast.Name):
            return
        iterated = self.value(generator.iter, frame)
        before = dict(frame.names)
        label = ("item", self.number_of(node))
        frame.names[target.id] = self.graph.node(OPAQUE, (iterated,), label)
        self.values([*generator.ifs, node.elt], frame)
        frame.names = before

    def _table(self, node: ast.Dict, frame: Frame) -> Node:
        """A dictionary that is written down."""
        keys = [key for key in node.keys if isinstance(key, ast.Constant)]
        if len(keys) < len(node.keys):
            return self._not_followed(node, frame)
        parts = (self.values(each, frame) for each in (keys, node.values))
        return self.graph.node(TABLE, tuple(self.graph.node(TUPLE, tuple(p)) for p in parts))

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Node:
        """A function of one expression."""
        value = self._not_followed(node, frame)
        self.nested[value.serial] = Closure(lambda_function(node, frame.function), frame)
        return value

    def _not_followed(self, node: ast.expr, frame: Frame) -> Node:
        """Comprehensions, f-strings and others: known by the names they read."""
        frame.capture(node)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            self._each(node, frame)
        read = {name: frame.names[name] for name in names_in(node) if name in frame.names}
        value = self.unknown(node, tuple(read.values()))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            self.listed[value.serial] = node
        return value

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Node:
        known = self.reexported_libraries(node, frame)
        if known:
            if known[0] in _NUMBERS:
                return self.graph.constant(_NUMBERS[known[0]])
            return self._imported(known, frame)
        return self.attribute(self.value(node.value, frame), node.attr, frame)

    def attribute(self, owner: Node, name: str, frame: Frame) -> Node:
        """An attribute of a value."""
        assigned = frame.attributes.get((owner.serial, name))
        if assigned is not None:
            return assigned
        if name == "shape":
            return self.graph.node("shape", (owner,))
        if name == "mT":
            last = (self.graph.constant(-2), self.graph.constant(-1))
            return transpose(self.graph, owner, *last)
        if name == "data":
            return owner
        return self.graph.node(ATTRIBUTE, (owner,), name)

    def binary(self, operator: ast.operator, left: Node, right: Node) -> Node:
        """`left operator right`."""
        graph = self.graph
        if isinstance(operator, ast.Add):
            if {left.operator, right.operator} in _SEQUENCES:  # `x.shape[:-1] + (-1, 2)`
                return graph.node(TUPLE, (*self._spread_out(left), *self._spread_out(right)))
            return without_zeros(graph, add(graph, left, right), self.initial)
        if isinstance(operator, ast.Div):
            divided = divide(graph, left, right)
            if divided.operator == "multiply":
                parts = divided.operands
                known = mean_of_sum(graph, *parts) or softmax_of_powers(graph, *parts)
                return known or filled_last(graph, divided, self.initial)
            return divided
        plain = {ast.Sub: subtract, ast.Mult: multiply, ast.Pow: power, ast.FloorDiv: floor_divide}
        if isinstance(operator, ast.MatMult):
            return hoisted(graph, graph.node("matmul", (left, right)), self.initial)
        function = plain.get(type(operator))
        if function is not None:
            return filled_last(graph, function(graph, left, right), self.initial)
        return graph.node(_OTHER_OPERATORS.get(type(operator), "mod"), (left, right))

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Node:
        operand = self.value(node.operand, frame)
        if isinstance(node.op, ast.USub):
            return negate(self.graph, operand)
        if isinstance(node.op, ast.Not):
            return self.negation(operand)
        is_inverted = isinstance(node.op, ast.Invert)
        return self.graph.node("logical_not", (operand,)) if is_inverted else operand

    def _sequence(self, node: ast.Tuple | ast.List, frame: Frame) -> Node:
        values = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                values.append(self.graph.node("spread", (self.value(part.value, frame),)))
            else:
                values.append(self.value(part, frame))
        return self.graph.node(TUPLE, tuple(values))

    def _spread_out(self, sequence: Node) -> tuple[Node, ...]:
        """The parts of a tuple, or of another sequence as a whole."""
        if sequence.operator == TUPLE:
            return sequence.operands
        return (self.graph.node("spread", (sequence,)),)

    def items(self, node: ast.expr, frame: Frame) -> list[Node]:
        """The parts of a subscript."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._item(part, frame) for part in parts]

    def _item(self, node: ast.expr, frame: Frame) -> Node:
        if not isinstance(node, ast.Slice):
            value = self.value(node, frame)
            called = value.operands[0] if value.operator == OPAQUE and value.operands else None
            if called is not None and called.operator == GLOBAL and called.label == "range":
                return self.graph.node("arange", value.operands[1:], ())
            return value
        none = self.graph.constant(None)
        parts = [
            none if part is None else self.value(part, frame)
            for part in (node.lower, node.upper, node.step)
        ]
        return self.graph.node(SLICE, tuple(parts))

    def _comparison(self, node: ast.Compare, frame: Frame) -> Node:
        values = [self.value(part, frame) for part in (node.left, *node.comparators)]
        if len(values) > 2:
            return self.graph.node("comparison", tuple(values), self.number_of(node))
        left, right = values
        operator = node.ops[0]
        is_identity = isinstance(operator, (ast.Is, ast.IsNot))
        if is_constant(right, None) and (is_identity or isinstance(operator, (ast.Eq, ast.NotEq))):
            is_none = self._is_none(left)
            return is_none if isinstance(operator, (ast.Is, ast.Eq)) else self.negation(is_none)
        if is_identity:
            return self.unknown(node, (left, right))
        name = _COMPARISONS.get(type(operator))
        return self.unknown(node, values) if name is None else self.graph.node(name, (left, right))

    def _is_none(self, value: Node) -> Node:
        known = self.initial(value) or value
        if known.operator == CONSTANT:
            return self.graph.constant(known.value is None)
        if known.operator in _TENSOR_FREE:
            return self.graph.constant(False)
        return self.graph.node("is_none", (value,))

    def initial(self, value: Node) -> Node | None:
        """What the constructor assigned to an attribute of `self`, if that is all there is."""
        raise NotImplementedError

    def negation(self, condition: Node) -> Node:
        """`not condition`."""
        if condition.operator == "not":
            return condition.operands[0]
        decided = self.truth(condition)
        if decided is not None:
            return self.graph.constant(not decided)
        return self.graph.node("not", (condition,))

    def truth(self, condition: Node) -> bool | None:
        """What a condition comes to, `None` if that is not known."""
        if condition.operator == CONSTANT:
            return bool(condition.value)
        if condition.operator in ("eq", "ne") and _is_of_another_device(*condition.operands):
            return condition.operator == "ne"
        known = self.initial(condition) or condition
        return True if known.operator == AVAILABLE else None

    def select(self, condition: Node, chosen: Node, other: Node) -> Node:
        """`chosen if condition else other`."""
        if chosen is other:
            return chosen
        decided = self.truth(condition)
        if decided is not None:
            return chosen if decided else other
        if condition.operator == "not":
            condition, chosen, other = condition.operands[0], other, chosen
        chosen, other = _arm(chosen, condition, 1), _arm(other, condition, 2)
        for one, rest in ((chosen, other), (other, chosen)):
            if one.operator == "cast" and one.operands[0] is rest:  # `x.half() if fast else x`
                return self.graph.node("cast", (rest, condition))
        joined = either_filled(self.graph, condition, chosen, other, self.initial)
        joined = joined or either_scaled(self.graph, condition, chosen, other)
        return joined or self.graph.node(SELECT, (condition, chosen, other))

    def values(self, nodes: Iterable[ast.expr], frame: Frame) -> list[Node]:
        """What several expressions compute."""
        return [self.value(node, frame) for node in nodes]


def _arm(value: Node, condition: Node, taken: int) -> Node:
    """What a choice comes to where its condition has been asked already."""
    is_asked = value.operator == SELECT and value.operands[0] is condition
    return value.operands[taken] if is_asked else value


def _is_of_another_device(asked: Node, kind: Node) -> bool:
    """Whether `x.device.type` is compared with a kind that has neither CUDA nor the NPU."""
    is_kind = kind.operator == CONSTANT and kind.value in _OTHER_DEVICES
    return is_kind and asked.operator == ATTRIBUTE and asked.label == "type"


_COMPUTED_BY: dict[type[ast.AST], Callable[[Any, Any, Frame], Node]] = {
    ast.Call: lambda expressions, node, frame: expressions.call(node, frame),
    ast.Attribute: Expressions._attribute,
    ast.BinOp: Expressions._calculation,
    ast.UnaryOp: Expressions._unary,
    ast.Subscript: Expressions._subscripted,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Compare: Expressions._comparison,
    ast.IfExp: Expressions._choice,
    ast.BoolOp: Expressions._decision,
    ast.NamedExpr: Expressions._named,
    ast.Lambda: Expressions._lambda,
    ast.Dict: Expressions._table,
}


_SEQUENCES = ({TUPLE}, {TUPLE, "index"}, {TUPLE, "shape"})
"""What is added one behind the other."""
_OTHER_OPERATORS: dict[type[ast.operator], str] = {
    ast.BitAnd: "logical_and",
    ast.BitOr: "logical_or",
    ast.BitXor: "logical_xor",
    ast.Mod: "mod",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
