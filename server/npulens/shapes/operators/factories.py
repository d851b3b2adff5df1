"""Tensors made of numbers: where they are, and how long."""

from npulens.shapes.values.applied import Applied, dim_of, sizes
from npulens.shapes.values.shape_values import (
    UNKNOWN,
    Foreign,
    Items,
    Number,
    Size,
    Tensor,
    Value,
    is_on_host,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import Dim, Shape, closed, opened

_FIXED = frozenset(
    {"zeros", "ones", "full", "empty", "arange", "eye", "linspace", "range", "triu_indices"}
)
_RANDOM = frozenset({"rand", "randn", "randint", "randperm", "normal", "logspace"})
SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn", "arange", "eye", "randperm"})
"""Those that take sizes alone."""
FROM_DATA = frozenset({"tensor", "as_tensor", "from_numpy", "asarray", "frombuffer", "FloatTensor"})
FACTORIES = _FIXED | _RANDOM | FROM_DATA
LIKE = frozenset(
    f"{name}_like" for name in ("zeros", "ones", "full", "empty", "rand", "randn", "randint")
)
NEW = frozenset({"new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"})
_KINDS = {"arange": "int", "randint": "int", "randperm": "int", "rand": "float", "randn": "float"}


def made(call: Applied, place: Value | None) -> Tensor:
    """The result of a function that makes a tensor on the device of a place.

    The receiver of a method is not among the arguments.
    """
    is_host = place is None or is_host_device(place)
    is_fixed = call.name in _FIXED or call.name.removeprefix("new_") in _FIXED
    dtype = call.keywords.get("dtype")
    kind = _KINDS.get(call.name, "") if dtype is None else kind_of_type(dtype)
    return Tensor(_shape(call), kind, is_host, is_fixed)


def made_like(call: Applied) -> Tensor:
    """The result of `zeros_like` and its like."""
    place = call.keywords.get("device")
    host = is_on_host(call.first) if place is None else is_host_device(place)
    own = call.kind if "rand" not in call.name else ""
    is_fixed = not call.name.startswith("rand")
    kind = kind_of_type(call.keywords["dtype"]) if "dtype" in call.keywords else own
    return Tensor(call.shape, kind, host, is_fixed)


def is_host_device(value: Value) -> bool:
    """Whether what is given as a device is the host."""
    return isinstance(value, Foreign) and value.name == "cpu"


def kind_of_type(value: Value) -> str:
    """`bool`, `int` or `float` of what `torch.long` and its like represent."""
    name = value.name.rpartition(".")[2] if isinstance(value, Foreign) else ""
    if name == "bool":
        return "bool"
    if "int" in name or name in ("long", "short"):
        return "int"
    return "float" if "float" in name or name in ("half", "double") else ""


def _shape(call: Applied) -> Shape:
    name = call.name.removeprefix("new_")
    if name in ("arange", "range"):
        return closed(_count(call))
    if name in ("linspace", "logspace"):
        return closed(dim_of(call.get(2, "steps")))
    if name == "randperm":
        return closed(dim_of(call.get(0, "n")))
    if name == "eye":
        return closed(dim_of(call.get(0, "n")), dim_of(call.get(1, "m") or call.get(0, "n")))
    if name in ("full", "normal"):
        return sizes([call.get(0 if name == "full" else 2, "size") or UNKNOWN])
    if name == "randint":
        given = [value for value in call.arguments if isinstance(value, (Items, Size))]
        return sizes(given) if len(given) == 1 else opened(call.sources)
    if name in FROM_DATA:
        return _of_list(call.get(0, "data") or UNKNOWN)
    return sizes(call.arguments or [call.keywords.get("size", UNKNOWN)])


def _count(call: Applied) -> Dim:
    values = [value for value in call.arguments if isinstance(value, Number)]
    if len(values) == 1 and len(call.arguments) == 1:
        return dim_of(values[0])
    return Dim("?", frozenset().union(*(value.sources for value in values)))


def _of_list(value: Value) -> Shape:
    if isinstance(value, Number):
        return closed()
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, Items):
        if not isinstance(value.each, Number):
            return opened(value.sources)
        return closed(
            Dim("?" if value.elements is None else str(len(value.elements)), value.sources)
        )
    return opened(sources_of(value))
