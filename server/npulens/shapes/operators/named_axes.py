"""What einops and `einsum` make of shapes: a pattern names the dimensions.

Sources: https://einops.rocks/api/rearrange/ and https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
"""

import re
from collections.abc import Callable, Mapping, Sequence

from npulens.shapes.operators.shape_rearranging import product_text
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import Foreign, Number, Tensor, Value
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, ONE, Dim, Shape, closed, opened

_LONGEST = 200
_TOKEN = re.compile(r"\(|\)|[A-Za-z_]\w*|1|\S")
_NAME = re.compile(r"[A-Za-z_]\w*")
_LETTERS = re.compile(r"[A-Za-z]*")
Named = Callable[[str], Dim]
"""The length that an axis stands for of which nothing else is known."""
_Group = list[str]


def rearranged(call: Applied, named: Named) -> Value:
    """`rearrange`, `reduce` and `repeat` of einops."""
    sides = _sides(call.get(1, "pattern"))
    if sides is None or not isinstance(call.first, Tensor):
        return call.result(opened(call.sources), call.kind)
    left, right = map(_groups, sides)
    if left is None or right is None or not _fits(call.shape, len(left)):
        return call.result(opened(call.sources), call.kind)
    lengths = {name: _given(value) for name, value in call.keywords.items()}
    for index, group in enumerate(left):
        dim = call.shape.at(index)
        if len(group) == 1 and group[0] not in lengths:
            lengths[group[0]] = dim if dim.text != "?" or dim.sources else named(group[0])
        for name in group:
            if name not in lengths:
                lengths[name] = Dim("?", dim.sources) if dim.sources else named(name)
    return call.result(closed(*(_joined(group, lengths) for group in right)), call.kind)


def contracted(call: Applied, named: Named) -> Value:
    """`torch.einsum`, and that of einops, which has the pattern last."""
    is_first = isinstance(call.first, Foreign)
    sides = _sides(call.first if is_first else call.arguments[-1] if call.arguments else None)
    tensors = list(call.arguments[1:] if is_first else call.arguments[:-1])
    if sides is None:
        return call.result(opened(call.sources))
    read = _letters if is_first else _names
    inputs = [read(part) for part in sides[0].split(",")]
    output = read(sides[1])
    if output is None or len(inputs) != len(tensors):
        return call.result(opened(call.sources))
    lengths: dict[str, Dim] = {}
    for axes, tensor in zip(inputs, tensors, strict=True):
        if axes is None or not isinstance(tensor, Tensor):
            continue
        for index, axis in enumerate(axes if _fits(tensor.shape, len(axes)) else ()):
            dim = tensor.shape.at(index)
            if lengths.get(axis, ANY_LENGTH).text == "?":
                known = lengths[axis].sources if axis in lengths else frozenset()
                lengths[axis] = dim._replace(sources=dim.sources | known)
    dims = (lengths.get(axis, ANY_LENGTH) for axis in output)
    named_dims = (
        dim if dim.text != "?" or dim.sources else named(axis)
        for axis, dim in zip(output, dims, strict=True)
    )
    return call.result(closed(*named_dims))


def _sides(pattern: Value | None) -> tuple[str, str] | None:
    """The two sides of a pattern that is written and not too long."""
    text = pattern.name if isinstance(pattern, Foreign) else ""
    left, arrow, right = text.partition("->")
    return (left, right) if arrow and len(text) <= _LONGEST and "." not in text else None


def _groups(side: str) -> list[_Group] | None:
    """The axes of one side, those in brackets together; `None` if it cannot be read."""
    groups: list[_Group] = []
    inside: _Group | None = None
    for token in _TOKEN.findall(side):
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif token == "1" or _NAME.fullmatch(token):
            axes = [] if token == "1" else [token]
            if inside is None:
                groups.append(axes)
            else:
                inside += axes
        else:
            return None
    return groups if inside is None else None


def _letters(side: str) -> Sequence[str] | None:
    text = side.replace(" ", "")
    return text if _LETTERS.fullmatch(text) else None


def _names(side: str) -> Sequence[str] | None:
    names = side.split()
    return names if all(map(_NAME.fullmatch, names)) else None


def _fits(shape: Shape, count: int) -> bool:
    return len(shape.lead) <= count if shape.is_open else len(shape.lead) == count


def _given(value: Value) -> Dim:
    return Dim(*value) if isinstance(value, Number) else ANY_LENGTH


def _joined(group: _Group, lengths: Mapping[str, Dim]) -> Dim:
    """The length of one dimension that has several axes."""
    dims = [lengths.get(name, ANY_LENGTH) for name in group]
    if not dims:
        return ONE
    sources = frozenset().union(*(dim.sources for dim in dims))
    if len(dims) == 1:
        return dims[0]
    return Dim(product_text([dim.text for dim in dims]), sources)
