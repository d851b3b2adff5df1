"""Functions of other modules whose results have shapes that depend on data.

What such a function returns is kept as plain data, without the places in its module, so that it
can be handed from file to file and stays the same while that module is edited elsewhere.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath

from npulens.catalog.model import ReturnedShape
from npulens.shapes.extents import NO_SOURCES, Dim, Shape, Sources
from npulens.shapes.values import UNKNOWN, Items, Number, Tensor, Value, items_of

_DEEPEST = 2
_MOST_PARTS = 16
_NOTHING = ReturnedShape()
_Returned = frozenset[tuple[str, str, ReturnedShape]]


class Elsewhere:
    """What is known of functions that a module imports.

    Args:
        returned: The functions of the project that return such shapes, by path and name.
        path: The module that imports.
    """

    def __init__(self, returned: _Returned, path: str) -> None:
        self._by_name = _by_name(returned)
        self._by_module = _by_module(returned)
        self._folder = PurePath(path).parent.as_posix().split("/")

    def find(self, qualified: str) -> ReturnedShape | None:
        """What a function returns; `None` unless that is known and depends on data.

        Args:
            qualified: Its name as the imports have it: `pack.boxes.keep` or `..boxes.keep`.
        """
        module, _, name = qualified.rpartition(".")
        places = self._by_name.get(name)
        if places is None:
            return None
        if not qualified.startswith("."):
            return self._absolute(module.split("."), places)
        inner = qualified.lstrip(".")
        ups = len(qualified) - len(inner) - 1
        folder = self._folder[: len(self._folder) - ups]
        return places.get("/".join((*folder, *inner.split(".")[:-1])).removeprefix("./"))

    def functions_in(self, qualified: str) -> Iterator[str]:
        """The names of such functions in a module."""
        for name in self._by_module.get(qualified.rpartition(".")[2], ()):
            if self.find(f"{qualified}.{name}") is not None:
                yield name

    @property
    def is_empty(self) -> bool:
        return not self._by_name

    def _absolute(
        self, module: list[str], places: Mapping[str, ReturnedShape]
    ) -> ReturnedShape | None:
        """The function in the module of this name that is nearest, seen from the importing one."""
        outside = {}
        for place in places:
            parts = place.split("/")
            if parts[-len(module) :] == module:
                outside[place] = parts[: -len(module)]
        own = [part for part in self._folder if part != "."]
        around = [place for place, root in outside.items() if own[: len(root)] == root]
        if around:
            return places[max(around, key=lambda place: len(outside[place]))]
        is_clear = len(module) > 1 and len(outside) == 1
        return places[next(iter(outside))] if is_clear else None


@lru_cache(maxsize=8)
def _by_name(returned: _Returned) -> Mapping[str, Mapping[str, ReturnedShape]]:
    found: dict[str, dict[str, ReturnedShape]] = {}
    for path, name, shape in returned:
        found.setdefault(name, {})[path] = shape
    return found


@lru_cache(maxsize=8)
def _by_module(returned: _Returned) -> Mapping[str, frozenset[str]]:
    """The names of functions by the last part of the path of their module."""
    found: dict[str, set[str]] = {}
    for path, name, _ in returned:
        found.setdefault(path.rpartition("/")[2], set()).add(name)
    return {module: frozenset(names) for module, names in found.items()}


def summary_of(value: Value, *, waits: bool) -> ReturnedShape | None:
    """What a function returns, if that depends on data."""
    found = _summary(value, _DEEPEST)
    return None if found == _NOTHING else found._replace(waits=waits)


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
