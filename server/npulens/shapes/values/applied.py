"""A call of an operator, and the shapes in its arguments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npulens.shapes.values.shape_values import (
    UNKNOWN,
    Items,
    Number,
    Size,
    Tensor,
    Value,
    is_on_host,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import (
    ANY_LENGTH,
    ANY_SHAPE,
    SCALAR,
    Dim,
    Shape,
    Sources,
    closed,
    opened,
)

_OF_NUMBERS = frozenset({"div", "floor_divide", "remainder"})
"""These take two numbers of the host, too, and make a tensor there."""


@dataclass(slots=True)
class Applied:
    """A call of an operator; the receiver of a method is its first argument."""

    name: str
    arguments: Sequence[Value]
    keywords: dict[str, Value] = field(default_factory=dict)

    def get(self, index: int, *names: str) -> Value | None:
        """An argument by place or name."""
        if index < len(self.arguments):
            return self.arguments[index]
        return next((self.keywords[name] for name in names if name in self.keywords), None)

    def number(self, index: int, *names: str, default: int | None = None) -> int | None:
        """The number that such an argument is, if it is written; `default` if it is left out."""
        value = self.get(index, *names)
        if value is None:
            return default
        return value.value if isinstance(value, Number) else None

    @property
    def first(self) -> Value:
        return self.get(0, "input", "x", "tensor") or UNKNOWN

    @property
    def shape(self) -> Shape:
        """The shape of the first argument."""
        return shape_of(self.first)

    @property
    def kind(self) -> str:
        """The type of the first argument, empty if that is not known."""
        return self.first.kind if isinstance(self.first, Tensor) else ""

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments, also those in lists."""
        found: list[Tensor] = []
        for value in (*self.arguments, *self.keywords.values()):
            if isinstance(value, Tensor):
                found.append(value)
            elif isinstance(value, Items):
                found += (part for part in value.parts if isinstance(part, Tensor))
        return found

    @property
    def sources(self) -> Sources:
        return frozenset().union(*map(sources_of, (*self.arguments, *self.keywords.values())))

    def result(self, shape: Shape, kind: str = "") -> Tensor:
        """A tensor computed from the arguments, on the device of those with dimensions."""
        tensors = self.tensors
        if self.name in _OF_NUMBERS and all(isinstance(v, Number) for v in self.arguments):
            return Tensor(shape, kind, on_host=True)
        places = [tensor for tensor in tensors if tensor.shape != SCALAR] or tensors
        is_copied = any(tensor.on_host and tensor.copied for tensor in places)
        # What is computed with a copy on the host is there as well.
        on_host = bool(places) and all(
            tensor.on_host or (is_copied and not tensor.is_sure) for tensor in places
        )
        is_fixed = bool(tensors) and all(tensor.is_fixed for tensor in tensors)
        return Tensor(shape, kind, on_host, is_fixed, copied=self.copied)

    @property
    def copied(self) -> Sources:
        """What copied the values of the arguments from the device."""
        return frozenset().union(*(tensor.copied for tensor in self.tensors))

    def moved(self, shape: Shape) -> Tensor:
        """A tensor with the elements of the first argument; the others are lengths."""
        fixed = bool(self.tensors) and all(tensor.is_fixed for tensor in self.tensors)
        return Tensor(shape, self.kind, is_on_host(self.first), fixed, copied=self.copied)


def shape_of(value: Value) -> Shape:
    """The shape of a tensor; numbers have none."""
    if isinstance(value, Tensor):
        return value.shape
    return SCALAR if isinstance(value, Number) else ANY_SHAPE


def dim_of(value: Value | None) -> Dim:
    """The length that a number gives a dimension."""
    return Dim(*value) if isinstance(value, Number) else ANY_LENGTH


def sizes(values: Sequence[Value]) -> Shape:
    """The shape given by arguments such as `(n, 4)` or `n, 4`."""
    if len(values) == 1 and isinstance(values[0], Size):
        return values[0].shape
    if len(values) == 1 and isinstance(values[0], Items):
        if values[0].elements is None:
            return opened(sources_of(values[0]))
        values = values[0].elements
    if any(not isinstance(value, (Number, Tensor)) for value in values):
        return opened(frozenset().union(*map(sources_of, values)))
    return closed(*map(dim_of, values))


Transfer = Callable[[Applied], Value]
