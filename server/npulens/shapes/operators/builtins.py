"""What functions of Python itself do with tensors."""

import ast
from collections.abc import Callable
from typing import Protocol

from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_rules import BRANCH, HOST_READ
from npulens.shapes.values.shape_values import (
    CONSTANT,
    FOREIGN,
    NOTHING,
    UNKNOWN,
    Items,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    either,
    items_of,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import Sources

_READ_COST, _PRINT_COST = 40, 35


class Reader(Protocol):
    """What of an evaluation is needed here."""

    def report(
        self,
        rule: str,
        node: ast.AST,
        advice: LocalizedText,
        cost: int,
        *,
        synchronizes: bool = True,
        is_shape: bool = False,
    ) -> Sources: ...

    def element_of(self, value: Value) -> Value: ...

    def length_of(self, value: Value) -> Sources: ...


Builtin = Callable[[Reader, ast.Call, Applied], Value]


def _is_read(value: Value) -> bool:
    return isinstance(value, Tensor) and value.is_sure and not value.on_host


def _converted(reader: Reader, node: ast.Call, call: Applied) -> Value:
    """`int(x)`, `float(x)`, `bool(x)`."""
    value = call.get(0) or CONSTANT
    if _is_read(value):
        rule = BRANCH if call.name == "bool" else HOST_READ
        advice = message("shape.decide-on-device" if call.name == "bool" else "shape.stay")
        found = reader.report(rule, node, advice, _READ_COST)
        assert isinstance(value, Tensor)
        return CONSTANT if value.is_fixed else Number("?", found)
    if isinstance(value, Number) and not value.sources and call.name == "int":
        return value
    return Number("?", sources_of(value)) if isinstance(value, Number) else CONSTANT


def of_math(reader: Reader, node: ast.Call, call: Applied) -> Value:
    """A function of `math`, which reads a tensor as `float` does."""
    if any(map(_is_read, call.arguments)):
        return Number("?", reader.report(HOST_READ, node, message("shape.stay"), _READ_COST))
    return Number("?", frozenset().union(*map(sources_of, call.arguments)))


def _length(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    if isinstance(value, Tensor):
        dim = value.shape.at(0)
        return Number(dim.text, dim.sources, dim.is_rest)
    if isinstance(value, Items) and value.elements is not None and not value.sources:
        return Number(str(len(value.elements)))
    return Number("?", reader.length_of(value))


def _extreme(reader: Reader, node: ast.Call, call: Applied) -> Value:
    """`max` and `min` compare tensors one by one."""
    values = list(call.arguments)
    if len(values) == 1 and isinstance(values[0], Items):
        values = [values[0].each]
    if any(map(_is_read, values)):
        reader.report(BRANCH, node, message("shape.decide-on-device"), _READ_COST)
        result: Value = values[0]
        for value in values[1:]:
            result = either(result, value)
        return result if isinstance(result, Tensor) else UNKNOWN
    if values and all(isinstance(value, Number) for value in values):
        numbers = [value for value in values if isinstance(value, Number)]
        sources = frozenset().union(*map(sources_of, values))
        rests = [number for number in numbers if number.is_rest]
        others = [number for number in numbers if not number.is_rest]
        is_rest = bool(rests) and call.name == "max" and all(n.text == "0" for n in others)
        return Number("?", sources, is_rest)
    return UNKNOWN


def _sum(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    if isinstance(value, Items) and isinstance(value.each, Tensor):
        return value.each
    if isinstance(value, Items) and isinstance(value.each, Number):
        return Number("?", sources_of(value))
    if isinstance(value, Tensor):
        return apply_operator(Applied("sum", [value, Number("0")]))
    return CONSTANT if isinstance(value, Items) and value.each is CONSTANT else UNKNOWN


def _shown(reader: Reader, node: ast.Call, call: Applied) -> Value:
    for argument, value in zip(node.args, call.arguments, strict=False):
        if _is_read(value):
            place = argument if call.name == "print" else node
            reader.report(HOST_READ, place, message("shape.stay"), _PRINT_COST)
    return NOTHING if call.name == "print" else FOREIGN


def _range(reader: Reader, node: ast.Call, call: Applied) -> Value:
    if any(map(_is_read, call.arguments)):
        found = reader.report(HOST_READ, node, message("shape.stay"), _READ_COST)
        return Items(CONSTANT, None, found)
    return Items(CONSTANT, None, frozenset().union(*map(sources_of, call.arguments)))


def _enumerated(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    return Items(items_of((CONSTANT, reader.element_of(value))), None, reader.length_of(value))


def _zipped(reader: Reader, node: ast.Call, call: Applied) -> Value:
    elements = tuple(reader.element_of(value) for value in call.arguments)
    lengths = [reader.length_of(value) for value in call.arguments]
    return Items(items_of(elements), None, frozenset().union(*lengths))


def _listed(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    if value is None:
        return items_of(())
    if isinstance(value, (Items, Size)):
        return value
    if isinstance(value, Tensor):
        return Items(reader.element_of(value), None, reader.length_of(value))
    return UNKNOWN


def _turned(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    return value if isinstance(value, Items) else UNKNOWN


def _absolute(reader: Reader, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    return value if isinstance(value, Tensor) else CONSTANT


def _mapped(reader: Reader, node: ast.Call, call: Applied) -> Value:
    return Table(tuple((k, v) for k, v in call.keywords.items() if k))


def _plain(reader: Reader, node: ast.Call, call: Applied) -> Value:
    return CONSTANT


def _any(reader: Reader, node: ast.Call, call: Applied) -> Value:
    """`any` and `all` over tensors decide on each."""
    value = call.get(0)
    each = value.each if isinstance(value, Items) else UNKNOWN
    if _is_read(each):
        return Number(
            "?", reader.report(BRANCH, node, message("shape.decide-on-device"), _READ_COST)
        )
    return CONSTANT


BUILTINS: dict[str, Builtin] = {
    **dict.fromkeys(("int", "float", "bool"), _converted),
    "len": _length,
    **dict.fromkeys(("max", "min"), _extreme),
    "sum": _sum,
    **dict.fromkeys(("print", "str", "repr"), _shown),
    "range": _range,
    "enumerate": _enumerated,
    "zip": _zipped,
    **dict.fromkeys(("list", "tuple"), _listed),
    **dict.fromkeys(("reversed", "sorted"), _turned),
    "abs": _absolute,
    "dict": _mapped,
    **dict.fromkeys(("any", "all"), _any),
    **dict.fromkeys(("isinstance", "hasattr", "callable", "round", "pow", "hash", "id"), _plain),
}
