"""Functions of other modules whose results have shapes that depend on data, and classes there.

What such a function returns is kept as plain data, without the places in its module, so that it
can be passed from file to file and stays the same while that module is edited elsewhere.
"""

import ast
from typing import NamedTuple

from npulens.catalog.project_model import Keeper, ReturnedShape
from npulens.shapes.values.shape_values import UNKNOWN, Items, Number, Tensor, Value, items_of
from npulens.shapes.values.symbolic_dims import NO_SOURCES, Dim, Shape, Sources
from npulens.syntax.other_modules import OtherModules

_DEEPEST = 2
_MOST_PARTS = 16
_NOTHING = ReturnedShape()


class Elsewhere(NamedTuple):
    """What a module imports of others.

    Attributes:
        returned: Functions whose results have shapes that depend on data.
        keepers: Classes that keep what their methods are given.
    """

    returned: OtherModules[ReturnedShape]
    keepers: OtherModules[Keeper]


def summary_of(value: Value, *, synchronizes: bool) -> ReturnedShape | None:
    """What a function returns, if that depends on data."""
    found = _summary(value, _DEEPEST)
    return None if found == _NOTHING else found._replace(synchronizes=synchronizes)


def _summary(value: Value, left: int) -> ReturnedShape:
    if isinstance(value, Number) and value.sources:
        return ReturnedShape("number")
    if isinstance(value, Tensor) and value.sources and not value.on_host and value.is_sure:
        shape = value.shape
        behind = shape.hidden.union(*(dim.sources for dim in shape.tail))
        dims = tuple("" if d.sources else _number(d.text) for d in shape.lead)
        return ReturnedShape("tensor", dims, shape.is_open, bool(behind), value.kind)
    if not isinstance(value, Items) or not left:
        return _NOTHING
    if value.elements is None:
        each = _summary(value.each, left - 1)
        length = ("",) if value.sources else ("?",)
        return ReturnedShape("items", length, True, parts=(each,)) if each != _NOTHING else each
    parts = tuple(_summary(element, left - 1) for element in value.elements[:_MOST_PARTS])
    is_whole = len(parts) == len(value.elements) and any(part != _NOTHING for part in parts)
    return ReturnedShape("items", parts=parts) if is_whole else _NOTHING


def _number(text: str) -> str:
    return text if text.isdecimal() else "?"


def depends_on_shape(returned: ReturnedShape) -> bool:
    """Whether it is a shape that depends on data, not only a number."""
    return returned.kind == "tensor" or any(map(depends_on_shape, returned.parts))


def value_of(returned: ReturnedShape, source: ast.AST) -> Value:
    """What a call of such a function is, where the call is the source."""
    sources: Sources = frozenset((source,))
    if returned.kind == "number":
        return Number("?", sources)
    if returned.kind == "tensor":
        lead = tuple(Dim("?", sources) if text == "" else Dim(text) for text in returned.dims)
        hidden = sources if returned.depends else NO_SOURCES
        return Tensor(Shape(lead, returned.is_open, (), hidden), returned.element)
    if returned.kind != "items":
        return UNKNOWN
    parts = tuple(value_of(part, source) for part in returned.parts)
    if not returned.is_open:
        return items_of(parts)
    return Items(parts[0], None, sources if returned.dims == ("",) else NO_SOURCES)
