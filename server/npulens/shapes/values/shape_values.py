"""The values of names while a function is evaluated on shapes."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeGuard

from npulens.catalog.project_model import Keeper
from npulens.graphs.definitions import ClassHere
from npulens.shapes.values.symbolic_dims import (
    ANY_SHAPE,
    NO_SOURCES,
    Shape,
    Sources,
    joined,
)


class Tensor(NamedTuple):
    """A tensor.

    Attributes:
        shape: What is known of its shape.
        kind: `bool`, `int`, `float`, or empty if that is not known.
        on_host: It is in the memory of the host.
        is_fixed: Its values do not depend on data, as those of `torch.arange(4)`.
        is_sure: It is a tensor for certain, and no list of some.
        copied: What copied its values from the device, if it is on the host.
    """

    shape: Shape = ANY_SHAPE
    kind: str = ""
    on_host: bool = False
    is_fixed: bool = False
    is_sure: bool = True
    copied: Sources = NO_SOURCES

    @property
    def sources(self) -> Sources:
        return self.shape.sources


class Number(NamedTuple):
    """A number of the host.

    Attributes:
        text: How it reads: digits, a name or an expression.
        sources: What made it depend on the values of tensors; empty if it does not.
        is_rest: It is a fixed number less one that depends on them.
    """

    text: str = "?"
    sources: Sources = NO_SOURCES
    is_rest: bool = False

    @property
    def value(self) -> int | None:
        """What it is, if that is written."""
        digits = self.text.removeprefix("-")
        return int(self.text) if digits.isdecimal() and len(digits) < 10 else None


class Items(NamedTuple):
    """A list or tuple.

    Attributes:
        each: What any element may be.
        elements: The elements, if they are known one by one.
        sources: What made its length depend on data.
    """

    each: "Value"
    elements: "tuple[Value, ...] | None" = None
    sources: Sources = NO_SOURCES

    @property
    def parts(self) -> "tuple[Value, ...]":
        """The elements, or what any may be for all of them."""
        return (self.each,) if self.elements is None else self.elements


class Table(NamedTuple):
    """A dictionary.

    Attributes:
        entries: What it has under strings that are written.
        each: What it may have under other keys; `None` if it has none.
    """

    entries: "tuple[tuple[str, Value], ...]" = ()
    each: "Value | None" = None

    @property
    def parts(self) -> "tuple[Value, ...]":
        """What its values may be."""
        values = tuple(value for _, value in self.entries)
        return values if self.each is None else (*values, self.each)


class Size(NamedTuple):
    """What `x.shape` is."""

    shape: Shape


class Layer(NamedTuple):
    """A module of `torch.nn`, by its qualified name, or one of a class of this file.

    Attributes:
        name: The name.
        definition: The class, if it is one of this file.
        size: How many features or channels come out, as the constructor has it.
        parts: The modules that run one after the other, of a `Sequential`.
        keeps_lengths: A convolution leaves the lengths of its input as they are.
        given: What the parameters of the constructor are where the module is made.
    """

    name: str
    definition: ClassHere | None = None
    size: str = "?"
    parts: "tuple[Layer, ...]" = ()
    keeps_lengths: bool = False
    given: tuple[tuple[str, str], ...] = ()


class Layers(NamedTuple):
    """Modules in a list or dictionary."""

    each: Layer


class Meter(NamedTuple):
    """An instance of a class of another module that keeps what its methods are given."""

    keeper: Keeper


class Closure(NamedTuple):
    """A nested function or lambda, and what names around it hold.

    The closure is one of them, so it refers to nothing else.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    names: "Mapping[str, Value]"

    def __eq__(self, other: object) -> bool:
        """Whether it is the very same: its names may change, and lead back to it."""
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Foreign(NamedTuple):
    """Something that is no tensor: an array of NumPy, a string, `None`."""

    name: str = ""


class Other(NamedTuple):
    """Not known."""


Value = Tensor | Number | Items | Table | Size | Layer | Layers | Meter | Closure | Foreign | Other
UNKNOWN = Other()
FOREIGN = Foreign()
NOTHING = Foreign("None")
ARRAY = Foreign("numpy")
"""An array of NumPy, and what is computed from one; tables of pandas count as such."""
POSSIBLE_MASK = Foreign("possible mask")
"""What comes of comparing something unknown: a mask if that is a tensor."""
HOST_BATCH = Foreign("batch on the host")
"""What a tokenizer or a loader returns, until it is moved."""
_DEEPEST = 3
LIKELY = Tensor(is_sure=False)
"""What is very likely a tensor, but may be a list of some."""
CONSTANT = Number()


def either(first: Value, second: Value) -> Value:
    """What is one or the other."""
    if first == second:
        return first
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return Tensor(
            joined(first.shape, second.shape),
            first.kind if first.kind == second.kind else "",
            first.on_host and second.on_host,
            first.is_fixed and second.is_fixed,
            first.is_sure and second.is_sure,
            first.copied | second.copied,
        )
    if isinstance(first, Number) and isinstance(second, Number):
        text = first.text if first.text == second.text else "?"
        return Number(text, first.sources | second.sources)
    if isinstance(first, Items) and isinstance(second, Items):
        return _either_list(first, second)
    if isinstance(first, Table) and isinstance(second, Table):
        return merged(first, second)
    for tensor, other in ((first, second), (second, first)):
        if isinstance(tensor, Tensor):
            if other == ARRAY:
                return ARRAY if tensor.on_host else tensor._replace(is_sure=False)
            if isinstance(other, Items) and isinstance(other.each, Tensor):
                if tensor.on_host and other.each.on_host:
                    return Items(Tensor(kind=tensor.kind, on_host=True), None, other.sources)
                return tensor._replace(is_sure=False)
            if isinstance(other, Number):  # a sum that starts with 0
                return tensor._replace(is_sure=False)
            if other is UNKNOWN:
                return tensor._replace(shape=tensor.shape.unnamed(), is_sure=False)
            return tensor._replace(is_sure=False) if other == NOTHING else UNKNOWN
        if isinstance(tensor, Items) and other == NOTHING:
            return tensor
    pair = (ARRAY, UNKNOWN)
    return ARRAY if first in pair and second in pair else UNKNOWN


def _either_list(first: Items, second: Items) -> Items:
    sources = first.sources | second.sources
    known, others = first.elements, second.elements
    if known is not None and others is not None and len(known) == len(others):
        elements = tuple(map(either, known, others))
        return Items(either(first.each, second.each), elements, sources)
    # Of a list that begins empty, or with `None` for what comes, the other one is what it holds.
    if first.elements == () or first.each == NOTHING:
        return Items(second.each, None, sources)
    if second.elements == () or second.each == NOTHING:
        return Items(first.each, None, sources)
    return Items(either(first.each, second.each), None, sources)


def merged(first: Table, second: Table) -> Table:
    """What two dictionaries have, of which either may count."""
    others = dict(second.entries)
    both = {k: either(v, others[k]) if k in others else v for k, v in first.entries}
    rest = [each for each in (first.each, second.each) if each is not None]
    return Table(tuple((others | both).items()), any_of(rest) if rest else None)


def unsure(value: Value) -> Value:
    """A value of which it is not certain that it is a tensor."""
    if isinstance(value, Tensor):
        return value._replace(is_sure=False)
    if isinstance(value, Items) and value.elements is not None:
        return items_of(tuple(map(unsure, value.elements)))
    return value


def with_value(table: Table, value: Value) -> Table:
    """A dictionary with one more value, under a key that is not known."""
    return table._replace(each=value if table.each is None else either(table.each, value))


def any_of(values: Iterable[Value]) -> Value:
    """What is one of several; of none, nothing is known."""
    known = tuple(values)
    return reduce(either, known) if known else UNKNOWN


def is_on_host(value: Value) -> bool:
    """Whether a value is a tensor in the memory of the host."""
    return isinstance(value, Tensor) and value.on_host


def on_device(value: Value) -> TypeGuard[Tensor]:
    """Whether a value is a tensor that the device has."""
    return isinstance(value, Tensor) and value.is_sure and not value.on_host


def may_be_on_device(value: Value) -> TypeGuard[Tensor]:
    """Whether a value is one, or very likely is."""
    return isinstance(value, Tensor) and not value.on_host


def is_on(value: Value | None) -> bool:
    """Whether an argument is given and not `False`."""
    return value is not None and value != Number("False")


def are_deep(values: "Sequence[Value]", left: int = _DEEPEST) -> bool:
    """Whether lists in lists are so deep that comparing them could take long."""
    for value in values:
        inner: Sequence[Value] = ()
        if isinstance(value, (Items, Table)):
            inner = value.parts
        if inner and (left == 0 or are_deep(inner, left - 1)):
            return True
    return False


def items_of(elements: "tuple[Value, ...]") -> Items:
    """A list of known elements."""
    if are_deep(elements):
        return Items(UNKNOWN)
    return Items(any_of(elements), elements)


def sources_of(value: Value) -> Sources:
    """What made a value depend on data; of a list, its length and its elements."""
    if isinstance(value, (Tensor, Number)):
        return value.sources
    if isinstance(value, Size):
        return value.shape.sources
    if isinstance(value, Items):
        return value.sources | sources_of(value.each)
    return NO_SOURCES


def element_of(value: Value) -> Value:
    """What a loop over a value gets."""
    if isinstance(value, Tensor):
        return value._replace(shape=value.shape.without(0))
    if isinstance(value, (Items, Layers)):
        return value.each
    if value == ARRAY:
        return ARRAY
    if value == HOST_BATCH:
        return Tensor(on_host=True, is_sure=False)
    return CONSTANT if isinstance(value, Size) else UNKNOWN


def length_of(value: Value) -> Sources:
    """What makes the number of elements depend on data."""
    if isinstance(value, Tensor):
        return value.shape.at(0).sources
    return value.sources if isinstance(value, Items) else NO_SOURCES
