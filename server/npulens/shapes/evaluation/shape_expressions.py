"""Evaluates expressions on shapes."""

import ast
from collections.abc import Callable
from typing import Any, TypeGuard

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.graphs.interfaces import OF_MODULES
from npulens.shapes.evaluation.decided_conditions import (
    checked_for_elements,
    checks_for_flash,
    lacks_flash,
    of_framework,
)
from npulens.shapes.evaluation.optional import checked_parameter, is_given
from npulens.shapes.evaluation.shape_frames import MAX_STEPS, MAX_TOTAL, ExhaustedError, Frame
from npulens.shapes.evaluation.tensor_evidence import (
    Comprehension,
    computes_on,
    known_names,
    targets_of,
)
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.arithmetic import kind_of, of_numbers, put_together
from npulens.shapes.values.shape_rules import BRANCH, HOST_READ
from npulens.shapes.values.shape_values import (
    ARRAY,
    CONSTANT,
    FOREIGN,
    HOST_BATCH,
    LIKELY,
    NOTHING,
    POSSIBLE_MASK,
    UNKNOWN,
    Foreign,
    Items,
    Layer,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    any_of,
    are_deep,
    either,
    element_of,
    items_of,
    length_of,
    may_be_on_device,
    merged,
    on_device,
    sources_of,
    with_value,
)
from npulens.shapes.values.symbolic_dims import ANY_SHAPE, NO_SOURCES, SCALAR, Sources, broadcast
from npulens.syntax.values import Name, dotted_name
from npulens.syntax.walking import inner_nodes, nodes_below
from npulens.verdicts.answers import Answer, joined

_DEEPEST = 60
_LOGICAL = (ast.BitAnd, ast.BitOr, ast.BitXor)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_BRANCH_COST, _PRINT_COST = 45, 35
_OF_TABLES = frozenset({"iloc", "loc", "iat"})
"""What tables of pandas have, and no tensor."""
_IN_PAIRS = {"values": 0, "indices": 1}
"""Parts of what `topk`, `sort` and `max` return."""
_OF_PYTHON = frozenset({"int", "float", "bool", "str", "list", "tuple", "dict", "set"})
_SAME = frozenset({"data", "real", "imag", "grad"})
_TRUTH = Tensor(SCALAR, "bool", is_sure=False)
"""`x.any()` of what is very likely a tensor."""


class Expressions(Frame):
    """Evaluates the expressions of one function."""

    def read(self, node: ast.expr | None) -> Value:
        """What an expression is; what happens in it is recorded.

        Raises:
            ExhaustedError: The evaluation takes too many steps.
        """
        if node is None:
            return NOTHING
        self.steps += 1
        self.session.steps += 1
        if self.steps > MAX_STEPS or self.session.steps > MAX_TOTAL:
            raise ExhaustedError
        reader = _READERS.get(type(node))
        if reader is None or self.depth > _DEEPEST:
            return UNKNOWN
        self.depth += 1
        try:
            return reader(self, node)
        finally:
            self.depth -= 1

    def decide(self, node: ast.expr, better: MessageId = "shape.decide-on-device") -> Sources:
        """Evaluate a condition that Python decides on; what makes it depend on data."""
        if isinstance(node, ast.BoolOp):
            return self._decide_in_turn(node, better)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.decide(node.operand, better)
        value = self.read(node)
        if on_device(value) or (may_be_on_device(value) and self._is_decided(node, value)):
            found = self.report(BRANCH, node, message(better), _BRANCH_COST, is_sure=value.is_sure)
            return NO_SOURCES if value.is_fixed else found
        return sources_of(value) if isinstance(value, Number) else NO_SOURCES

    def _is_decided(self, node: ast.expr, value: Tensor) -> bool:
        """Whether Python decides on what is very likely a tensor.

        That is its truth, an element of it, or how it compares, which lists have no answer to. A
        parameter may be a number as well.
        """
        if value == _TRUTH:
            return True
        match node:
            case ast.Compare(first, [operator], [second]):
                is_element = _is_element(first) or _is_element(second)
                is_ordered = isinstance(operator, _ORDERED) and not self._is_given(first, second)
                return (is_element or is_ordered) and computes_on(self.function.node) == "tensors"
        return False

    def _is_given(self, *nodes: ast.expr) -> bool:
        """Whether one of some expressions is a parameter, or no name or element at all."""
        names = {getattr(node, "id", "") for node in nodes}
        is_parameter = any(each.arg in names for each in self.function.parameters)
        return is_parameter or not isinstance(nodes[0], (ast.Name, ast.Subscript))

    def _decide_in_turn(self, node: ast.BoolOp, better: MessageId) -> Sources:
        """Operands of `and` and `or` up to the first that settles it."""
        sources = NO_SOURCES
        for value in node.values:
            sources |= self.decide(value, better)
            if self.settled(value) is isinstance(node.op, ast.Or):
                break
        return sources

    def settled(self, node: ast.expr) -> bool | None:
        """What a condition is in any case where the code runs on the NPU, if that is known."""
        return joined(node, self._settled_part).holds

    def _settled_part(self, node: ast.expr) -> Answer:
        by_values = self._by_values(node)
        return self.answer(node) if by_values is None else Answer(by_values)

    def _by_values(self, node: ast.expr) -> bool | None:
        """What a part of a condition is by what names hold here, and by the classes around."""
        if isinstance(node, ast.Name) and self.names.get(node.id) == Number("False"):
            inside = inner_nodes(self.function.node)
            return None if any(isinstance(part, ast.Nonlocal) for part in inside) else False
        if checks_for_flash(node):
            definitions = self.session.definitions
            definitions.queried.update(definitions.classes)
            return False if lacks_flash(definitions.classes.values()) else None
        if isinstance(node, ast.Call):
            return self._is_instance(node)
        name, known = checked_parameter(node)
        if name in self.given and known is not None and is_given(self.names.get(name)):
            return known
        return of_framework(node)

    def _is_instance(self, node: ast.Call) -> bool | None:
        """`isinstance(x, list)` where `x` surely is a tensor."""
        match node:
            case ast.Call(ast.Name("isinstance"), [ast.Name(name), kind]):
                value = self.named(name)
                is_tensor = isinstance(value, Tensor) and value.is_sure
                return False if is_tensor and are_of_python(kind) else None
        return None

    # Kinds of expressions

    def _constant(self, node: ast.Constant) -> Value:
        if node.value is None:
            return NOTHING
        if isinstance(node.value, bool):
            return Number(str(node.value))
        if isinstance(node.value, float):
            return CONSTANT
        if isinstance(node.value, int):
            return Number(str(node.value)) if abs(node.value) < 1 << 40 else CONSTANT
        return Foreign(node.value) if isinstance(node.value, str) else FOREIGN

    def _name(self, node: ast.Name) -> Value:
        value = self.named(node.id)
        if isinstance(value, Tensor):
            self._note(node, value)
            return value
        is_named = node.id not in self.stale
        if isinstance(value, Number) and value.text == "?" and not value.sources and is_named:
            return Number(node.id)
        return value

    def _note(self, node: ast.expr, value: Value) -> None:
        if self.session.recorder.notes_reads:
            self.session.recorder.read(node, self.function, value)

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self._attribute_read(node)
        if isinstance(value, Tensor):
            self._note(node, value)
        return value

    def _attribute_read(self, node: ast.Attribute) -> Value:
        name = dotted_name(node)
        if name is not None:
            written = ".".join((name.root, *name.path))
            if written in self.names:
                return self.names[written]
            if name.root == self.receiver:
                known = self.member(name.path[0]) if len(name.path) == 1 else self._of_member(name)
                return Tensor() if known is UNKNOWN and written in self.known else known
            found = self.qualified(node)
            if found:
                return Foreign(found)
            self.behind = None if node.attr in OF_MODULES else node.value
            value = self._part(self.read(node.value), node.attr)
            return self.named(written) if value is UNKNOWN else value
        self.behind = None if node.attr in OF_MODULES else node.value
        return self._part(self.read(node.value), node.attr)

    def _of_member(self, name: Name) -> Value:
        """`self.step.data` of a buffer, and a buffer of a module that the class keeps."""
        if len(name.path) != 2:
            return UNKNOWN
        first, attribute = name.path
        owner = self.names.get(f"{name.root}.{first}") or self.member(first)
        if isinstance(owner, Tensor) and attribute in _SAME:
            return owner
        if isinstance(owner, Layer) and owner.definition is not None:
            kept = self.member_of(owner.definition, attribute)
            return kept if isinstance(kept, Tensor) else UNKNOWN
        return UNKNOWN

    def _part(self, owner: Value, attribute: str) -> Value:
        if isinstance(owner, Tensor):
            if attribute == "shape":
                return Size(owner.shape)
            if attribute in ("T", "mT"):
                return apply_operator(Applied(attribute, [owner]))
            if attribute in _SAME:
                return owner
            if attribute == "ndim":
                return CONSTANT
            if attribute == "device":
                return Foreign("cpu" if owner.on_host else "device")
            return Foreign("dtype") if attribute == "dtype" else UNKNOWN
        if isinstance(owner, Items) and attribute in _IN_PAIRS:
            parts = owner.elements
            return parts[_IN_PAIRS[attribute]] if parts and len(parts) == 2 else UNKNOWN
        if owner == HOST_BATCH:
            return Tensor(on_host=True)
        if attribute == "shape":
            return Size(Tensor().shape)
        if owner == ARRAY:
            return ARRAY
        if owner is UNKNOWN and attribute in _OF_TABLES:
            return ARRAY
        if owner is UNKNOWN and attribute == "grad":
            return LIKELY
        if isinstance(owner, Layer) and attribute in ("weight", "bias"):
            return Tensor(kind="float")
        return UNKNOWN

    def _binary(self, node: ast.BinOp) -> Value:
        first, second = self.read(node.left), self.read(node.right)
        if _is_text(node.left):
            if isinstance(node.op, ast.Mod):
                self._formatted(node, second)
            return FOREIGN
        if UNKNOWN in (first, second) and isinstance(node.op, _ARITHMETIC):
            first = self._kept(node.left, first)
            second = self._kept(node.right, second)
        return self.operated(node, first, second)

    def _kept(self, node: ast.expr, value: Value) -> Value:
        return CONSTANT if value is UNKNOWN and self.is_kept_number(node) else value

    def _formatted(self, node: ast.BinOp, given: Value) -> None:
        """`"%.3f %d" % (loss, step)`, which reads what it writes."""
        values: list[Value] = [given]
        if isinstance(node.right, ast.Tuple):
            values = [
                element_of(self.read(each.value))
                if isinstance(each, ast.Starred)
                else self.read(each)
                for each in node.right.elts
            ]
        self.host_reads(node, values, message("shape.stay"), _PRINT_COST)

    def operated(self, node: ast.BinOp | ast.AugAssign, first: Value, second: Value) -> Value:
        """What an arithmetic operator makes of two values."""
        if POSSIBLE_MASK in (first, second) and isinstance(node.op, _LOGICAL):
            other = second if first == POSSIBLE_MASK else first
            if not (isinstance(other, Tensor) and other.kind == "bool"):
                return POSSIBLE_MASK
            return other._replace(shape=broadcast((other.shape, ANY_SHAPE)))
        if ARRAY in (first, second):
            return ARRAY
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            return self._computed(node, first, second)
        if isinstance(first, Number) and isinstance(second, Number):
            number = of_numbers(node, first, second)
            return number._replace(text=self.told(number.text)) if self.stale else number
        are_lists = isinstance(first, Items) and isinstance(second, Items)
        if isinstance(node.op, ast.Add) and are_lists:
            return put_together(first, second)
        if isinstance(node.op, ast.Mult) and isinstance(first, Items):
            return Items(first.each, None, first.sources | sources_of(second))
        return UNKNOWN

    def _computed(self, node: ast.BinOp | ast.AugAssign, first: Value, second: Value) -> Value:
        if any(
            isinstance(value, (Foreign, Layer)) and value != FOREIGN for value in (first, second)
        ):
            return UNKNOWN  # a format string or the like
        operands = [value for value in (first, second) if isinstance(value, Tensor)]
        if isinstance(node.op, ast.MatMult):
            result = apply_operator(Applied("matmul", [first, second]))
            assert isinstance(result, Tensor)
        else:
            shapes = [operand.shape for operand in operands]
            if UNKNOWN in (first, second):
                shapes.append(ANY_SHAPE)
            shape = broadcast(shapes)
            result = Applied("", operands).result(shape, kind_of(node.op, operands, first, second))
        self.uses(result.sources, node)
        return result._replace(is_sure=any(operand.is_sure for operand in operands))

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            sources = self.decide(node.operand)
            return Number("?", sources)
        value = self.read(node.operand)
        if isinstance(value, Number):
            number = f"-{value.text}" if isinstance(node.op, ast.USub) else "?"
            return Number(number if value.value is not None else "?", value.sources)
        if value is FOREIGN and isinstance(node.op, ast.Invert):
            return value  # a mask that selects the same each time
        return value if isinstance(value, Tensor) or value in (ARRAY, POSSIBLE_MASK) else UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.read(node.left), *map(self.read, node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return CONSTANT
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            return self._contained(node, values[-1])
        tensors = [value for value in values if isinstance(value, Tensor)]
        if tensors and not any(
            isinstance(value, (Foreign, Layer, Items, Size)) for value in values
        ):
            result = Applied("", tensors).result(broadcast(t.shape for t in tensors), "bool")
            return result._replace(is_sure=any(tensor.is_sure for tensor in tensors))
        if ARRAY in values:
            return ARRAY
        if UNKNOWN in values and all(map(_is_unknown_or_number, values)):
            return POSSIBLE_MASK
        return Number("?", NO_SOURCES.union(*map(sources_of, values)))

    def _contained(self, node: ast.Compare, container: Value) -> Value:
        if not on_device(container):
            return CONSTANT
        return Number("?", self.report(HOST_READ, node, message("shape.contained"), _BRANCH_COST))

    def _boolean(self, node: ast.BoolOp) -> Value:
        for value in node.values[:-1]:
            self.decide(value)
            if self.settled(value) is isinstance(node.op, ast.Or):
                return CONSTANT
        last = self.read(node.values[-1])
        return last if isinstance(last, (Number, Tensor)) else UNKNOWN

    def _conditional(self, node: ast.IfExp) -> Value:
        self.decide(node.test)
        known = self.settled(node.test)
        if known is not None:
            return self.read(node.body if known else node.orelse)
        before = self.names
        self.names = {**before, **self.proven(node.test)}
        first, self.names = self.read(node.body), before
        name = checked_for_elements(node.test)
        if isinstance(before.get(name), Items):
            self.names = {**before, name: items_of(())}
        second, self.names = self.read(node.orelse), before
        return either(first, second)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            values = []
            sources = NO_SOURCES
            for element in node.elts:
                value = self.read(element.value if isinstance(element, ast.Starred) else element)
                if isinstance(element, ast.Starred):
                    sources |= sources_of(value) if isinstance(value, (Items, Size)) else NO_SOURCES
                    value = element_of(value)
                values.append(value)
            return Items(any_of(values), None, sources)
        return items_of(tuple(map(self.read, node.elts)))

    def _dictionary(self, node: ast.Dict) -> Value:
        table = Table()
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.read(value)
            if key is None:
                table = merged(table, found) if isinstance(found, Table) else table
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                table = table._replace(entries=(*table.entries, (key.value, found)))
            else:
                table = with_value(table, found)
        return Table() if are_deep(table.parts) else table

    def _joined_string(self, node: ast.JoinedStr) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.shown(part.value)
        return FOREIGN

    def shown(self, node: ast.expr) -> None:
        """A value that is turned into text: of a tensor it is read."""
        value = self.read(node)
        if isinstance(value, Tensor) and not value.is_sure and self._may_be_array(node):
            return
        values = value.parts if isinstance(value, (Items, Table)) else [value]
        self.host_reads(node, values, message("shape.stay"), _PRINT_COST)

    def _may_be_array(self, node: ast.expr) -> bool:
        """Whether elements are written by a function that shows neither tensors nor arrays."""
        is_shown = bool(computes_on(self.function.node))
        return not is_shown and any(map(_is_element, nodes_below(node)))

    def _comprehension(self, node: Comprehension) -> Value:
        before, known = dict(self.names), self.known
        sources = self._generated(node)
        if isinstance(node, ast.DictComp):
            self.read(node.key)
            made: Value = Table(each=self.read(node.value))
            if are_deep([made]):
                made = Table(each=UNKNOWN)
        else:
            made = Items(self.read(node.elt), None, sources)
        self.names, self.known = before, known
        return made

    def _generated(self, node: Comprehension) -> Sources:
        """Bind what a comprehension binds, which is its own; what its length depends on."""
        sources = NO_SOURCES
        for index, generator in enumerate(node.generators):
            values = self.read(generator.iter)
            if index == 0:
                self.known = (self.known - targets_of(node)) | known_names(node).tensors
            sources |= length_of(values)
            self.bind(generator.target, element_of(values))
            for condition in generator.ifs:
                sources |= self.decide(condition)
                self.names.update(self.proven(condition))
        return sources

    def proven(self, test: ast.expr) -> dict[str, Value]:
        """The names that are tensors where a condition holds: `isinstance(x, torch.Tensor)`."""
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return {}
        found = (self._proven_by(part) for part in parts)
        return {name: tensor for name, tensor in found if name}

    def _proven_by(self, test: ast.expr) -> tuple[str, Tensor]:
        match test:
            case ast.Call(ast.Name("isinstance"), [ast.Name(name), kind]):
                is_check = self.qualified(kind) == "torch.Tensor"
            case ast.Call(function, [ast.Name(name), *_]):
                is_check = self.qualified(function) == "torch.is_tensor"
            case _:
                return "", Tensor()
        value = self.named(name)
        if not is_check or not (value in (UNKNOWN, ARRAY) or isinstance(value, Tensor)):
            return "", Tensor()
        return name, value._replace(is_sure=True) if isinstance(value, Tensor) else Tensor()

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.read(node.value)
        self.bind(node.target, value)
        return value

    def _passed_on(self, node: ast.Starred | ast.Await | ast.Yield | ast.YieldFrom) -> Value:
        value = self.read(node.value)
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            self.yielded.append(element_of(value) if isinstance(node, ast.YieldFrom) else value)
        return UNKNOWN

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign a value; see `shape_statements.py`."""
        raise NotImplementedError


def are_of_python(node: ast.expr) -> bool:
    """Whether types are those of values that Python has."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(are_of_python, node.elts))
    return isinstance(node, ast.Name) and node.id in _OF_PYTHON


def _is_element(node: ast.AST) -> bool:
    """Whether an expression is an element of something that has several axes: `x[i, 0]`."""
    parts = node.slice.elts if _has_axes(node) else []
    return bool(parts) and not any(isinstance(part, ast.Slice) for part in parts)


def _has_axes(node: ast.AST) -> TypeGuard[Any]:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is text that is written, or put together of some."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.Mod)):
        node = node.left
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_unknown_or_number(value: Value) -> bool:
    """Whether nothing is known of a value, or that it is a number that no data decides."""
    return value is UNKNOWN or (isinstance(value, Number) and not value.sources)


_READERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Call: lambda frame, node: frame.call(node),
    ast.Subscript: lambda frame, node: frame.subscript(node),
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolean,
    ast.IfExp: Expressions._conditional,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dictionary,
    ast.JoinedStr: Expressions._joined_string,
    ast.ListComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.NamedExpr: Expressions._walrus,
    ast.Lambda: Expressions.closure,
    ast.Starred: Expressions._passed_on,
    ast.Await: Expressions._passed_on,
    ast.Yield: Expressions._passed_on,
    ast.YieldFrom: Expressions._passed_on,
}
