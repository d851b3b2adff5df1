"""What functions of Python itself do with tensors."""

import ast
from collections.abc import Callable

from npulens.catalog.messages import message
from npulens.shapes.evaluation.shape_frames import Frame
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_rules import BRANCH, HOST_READ
from npulens.shapes.values.shape_values import (
    CONSTANT,
    FOREIGN,
    LIKELY,
    NOTHING,
    UNKNOWN,
    Items,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    any_of,
    element_of,
    items_of,
    length_of,
    may_be_on_device,
    on_device,
    sources_of,
)

_READ_COST, _PRINT_COST = 40, 35


Builtin = Callable[[Frame, ast.Call, Applied], Value]


def _converted(frame: Frame, node: ast.Call, call: Applied) -> Value:
    """`int(x)`, `float(x)`, `bool(x)`."""
    value = call.get(0) or CONSTANT
    if may_be_on_device(value):
        rule = BRANCH if call.name == "bool" else HOST_READ
        advice = message("shape.decide-on-device" if call.name == "bool" else "shape.stay")
        found = frame.report(rule, node, advice, _READ_COST, is_sure=value.is_sure)
        return CONSTANT if value.is_fixed else Number("?", found)
    if isinstance(value, Tensor):
        return Number("?", value.copied)
    if isinstance(value, Number) and not value.sources and call.name == "int":
        return value
    return Number("?", sources_of(value)) if isinstance(value, Number) else CONSTANT


def of_math(frame: Frame, node: ast.Call, call: Applied) -> Value:
    """A function of `math`, which reads a tensor as `float` does."""
    found = frame.host_reads(node, call.arguments, message("shape.stay"), _READ_COST)
    return Number("?", found or frozenset().union(*map(sources_of, call.arguments)))


def _length(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    if isinstance(value, Tensor):
        return Number(*value.shape.at(0))
    if isinstance(value, Items) and value.elements is not None and not value.sources:
        return Number(str(len(value.elements)))
    return Number("?", length_of(value))


def _extreme(frame: Frame, node: ast.Call, call: Applied) -> Value:
    """`max` and `min` compare tensors one by one."""
    values = list(call.arguments)
    if len(values) == 1 and isinstance(values[0], Items):
        values = [values[0].each]
    if any(map(on_device, values)):
        frame.report(BRANCH, node, message("shape.decide-on-device"), _READ_COST)
        result = any_of(values)
        return result if isinstance(result, Tensor) else UNKNOWN
    if values and all(isinstance(value, Number) for value in values):
        numbers = [value for value in values if isinstance(value, Number)]
        sources = frozenset().union(*map(sources_of, values))
        others = [number for number in numbers if not number.is_rest]
        has_rest = len(others) < len(numbers)
        is_rest = has_rest and call.name == "max" and all(n.text == "0" for n in others)
        return Number("?", sources, is_rest)
    return UNKNOWN


def _sum(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    if isinstance(value, Items) and isinstance(value.each, Tensor):
        return value.each
    if isinstance(value, Items) and isinstance(value.each, Number):
        return Number("?", sources_of(value))
    if isinstance(value, Tensor):
        return apply_operator(Applied("sum", [value, Number("0")]))
    return CONSTANT if isinstance(value, Items) and value.each is CONSTANT else UNKNOWN


def _shown(frame: Frame, node: ast.Call, call: Applied) -> Value:
    for argument, value in zip(node.args, call.arguments, strict=False):
        place = argument if call.name == "print" else node
        values = value.parts if isinstance(value, (Items, Table)) else [value]
        frame.host_reads(place, values, message("shape.stay"), _PRINT_COST)
    return NOTHING if call.name == "print" else FOREIGN


def _range(frame: Frame, node: ast.Call, call: Applied) -> Value:
    given = call.arguments
    if LIKELY in given and frame.is_given_parameter(node):
        given = [value for value in given if value != LIKELY]
    found = frame.host_reads(node, given, message("shape.stay"), _READ_COST)
    return Items(CONSTANT, None, found or frozenset().union(*map(sources_of, given)))


def _enumerated(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    return Items(items_of((CONSTANT, element_of(value))), None, length_of(value))


def _zipped(frame: Frame, node: ast.Call, call: Applied) -> Value:
    elements = tuple(element_of(value) for value in call.arguments)
    lengths = [length_of(value) for value in call.arguments]
    return Items(items_of(elements), None, frozenset().union(*lengths))


def _listed(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    if value is None:
        return items_of(())
    if isinstance(value, (Items, Size)):
        return value
    if isinstance(value, Tensor):
        return Items(element_of(value), None, length_of(value))
    return Items(UNKNOWN) if value is UNKNOWN else UNKNOWN


def _next(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    return element_of(value) if isinstance(value, (Items, Tensor)) else UNKNOWN


def _turned(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0)
    return value if isinstance(value, Items) else UNKNOWN


def _absolute(frame: Frame, node: ast.Call, call: Applied) -> Value:
    value = call.get(0) or UNKNOWN
    return value if isinstance(value, Tensor) else CONSTANT


def _any(frame: Frame, node: ast.Call, call: Applied) -> Value:
    """`any` and `all` over tensors decide on each."""
    value = call.get(0)
    each = value.each if isinstance(value, Items) else UNKNOWN
    if on_device(each):
        found = frame.report(BRANCH, node, message("shape.decide-on-device"), _READ_COST)
        return Number("?", found)
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
    "iter": lambda frame, node, call: call.get(0) or UNKNOWN,
    "next": _next,
    "abs": _absolute,
    "dict": lambda frame, node, call: Table(tuple((k, v) for k, v in call.keywords.items() if k)),
    **dict.fromkeys(("any", "all"), _any),
    **dict.fromkeys(
        ("isinstance", "hasattr", "callable", "round", "pow", "hash", "id"), lambda *call: CONSTANT
    ),
}
