"""What indexing makes of shapes, and where it finds the places of a mask first."""

import ast
import re

from npulens.catalog.messages import message
from npulens.shapes.evaluation.shape_expressions import Expressions
from npulens.shapes.evaluation.tensor_evidence import computes_on
from npulens.shapes.values.shape_rules import (
    BOOLEAN_MASK,
    HOST_READ,
    MASKED_ASSIGNMENT,
    OLD_SCALAR,
    SIZE_FROM_DATA,
)
from npulens.shapes.values.shape_values import (
    ARRAY,
    CONSTANT,
    HOST_BATCH,
    LIKELY,
    POSSIBLE_MASK,
    UNKNOWN,
    Foreign,
    Items,
    Layers,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    any_of,
    items_of,
    may_be_on_device,
    on_device,
    sources_of,
)
from npulens.shapes.values.symbolic_dims import (
    ANY_LENGTH,
    NO_SOURCES,
    ONE,
    SCALAR,
    Dim,
    Shape,
    Sources,
    broadcast,
    closed,
    opened,
)
from npulens.syntax.values import dotted_name, last_name

_LOSS = re.compile(r"(?:\A|_)loss(?:\Z|_)", re.IGNORECASE)
_MASK = re.compile(r"(?:\A|_)masks?\Z|\A(?:is_)?valid\Z")
_MASK_COST, _STORE_COST, _SIZE_COST, _READ_COST = 55, 30, 55, 40
_OLD_COST = 100
"""It fails, and waits where it is repaired."""


class Indexing(Expressions):
    """The part of an evaluation that is about square brackets."""

    def subscript(self, node: ast.Subscript) -> Value:
        """What `x[...]` is."""
        owner = self.read(node.value)
        if is_first_of_data(node):
            read = self._old_scalar(node, owner)
            if read is not UNKNOWN:
                return read
        if isinstance(owner, Tensor):
            return self._indexed(owner, node)
        index = UNKNOWN if isinstance(node.slice, ast.Slice) else self.read(node.slice)
        if owner == HOST_BATCH:
            return Tensor(on_host=True)
        if owner == ARRAY:
            return ARRAY
        if isinstance(owner, Table):
            return entry_of(owner, index)
        is_read = isinstance(index, Tensor) and not index.on_host and index.kind != "bool"
        if is_read and isinstance(owner, (Items, Layers)):
            self.report(HOST_READ, node.slice, message("shape.gather"), _READ_COST)
        if isinstance(owner, Size):
            return self._length(owner.shape, node.slice, index)
        if isinstance(owner, Items):
            return self._element(owner, node.slice, index)
        if owner is UNKNOWN and _may_be_mask(index):
            # Whatever it is, tensors, boxes or instances, it is indexed by the mask.
            return self._selected(node, is_sure=on_device(index))
        if owner is UNKNOWN and any(map(_sounds_like_mask, _parts(node), _values(node, index))):
            return self._selected(node, is_sure=False)
        if owner is UNKNOWN and isinstance(node.slice, ast.Tuple):
            if computes_on(self.function.node) == "arrays":
                return ARRAY
            return self._indexed(LIKELY, node)  # lists have no more than one index
        return owner.each if isinstance(owner, Layers) else UNKNOWN

    def _old_scalar(self, node: ast.Subscript, value: Value) -> Value:
        """`loss.data[0]`, which read the value before PyTorch 0.4 and fails since 0.5."""
        assert isinstance(node.value, ast.Attribute)
        owner, name = node.value.value, dotted_name(node.value.value)
        if name is not None:
            value = self.read(owner)  # more is known of `self.loss` than of `self.loss.data`
        is_begun = name is not None and ".".join((name.root, *name.path)) in self.scalars
        is_sure = is_begun or (on_device(value) and value.shape == SCALAR)
        is_open = value is UNKNOWN or (isinstance(value, Tensor) and value.shape.is_open)
        if not is_sure and not (is_open and _LOSS.search(last_name(owner)) is not None):
            return UNKNOWN
        advice = message("shape.item")
        return Number("?", self.report(OLD_SCALAR, node, advice, _OLD_COST, is_sure=is_sure))

    def _selected(self, node: ast.Subscript, *, is_sure: bool) -> Tensor:
        """What a mask selects of something that is not known."""
        advice = message("shape.keep-shape")
        found = self.report(BOOLEAN_MASK, node, advice, _MASK_COST, is_shape=True, is_sure=is_sure)
        return Tensor(closed(Dim("?", found))._replace(is_open=True), is_sure=False)

    def store(self, target: ast.Subscript, value: Value) -> None:
        """`x[...] = value` for a tensor."""
        owner = self.read(target.value)
        if not isinstance(owner, Tensor):
            index = self.read(None if isinstance(target.slice, ast.Slice) else target.slice)
            if owner is UNKNOWN and _may_be_mask(index):
                is_many, is_sure = isinstance(value, Tensor), on_device(index)
                self._stored_by_mask(target, is_many, is_whole=False, is_sure=is_sure)
            return
        parts = _parts(target)
        has_waited = False  # behind the first number nothing is left to wait for
        for part in parts:
            if isinstance(part, ast.Slice):
                self._sliced(owner.shape, 0, part, target)
                continue
            index = self.read(part)
            if isinstance(index, Tensor) and index.kind == "bool" and not index.on_host:
                is_many = isinstance(value, Tensor) and value.shape != SCALAR
                self._stored_by_mask(target, is_many, is_whole=_are_alike(owner, index))
            elif index == POSSIBLE_MASK and not owner.on_host:
                is_many = isinstance(value, Tensor)
                self._stored_by_mask(target, is_many, is_whole=False, is_sure=owner.is_sure)
            elif not owner.on_host and _sounds_like_mask(part, index):
                is_many = isinstance(value, Tensor)
                self._stored_by_mask(target, is_many, is_whole=False, is_sure=False)
            elif _is_number_of_device(index) and not has_waited:
                self.report(HOST_READ, part, message("shape.gather"), _READ_COST)
                has_waited = True

    def _stored_by_mask(
        self, target: ast.Subscript, is_many: bool, *, is_whole: bool, is_sure: bool = True
    ) -> None:
        advice = message("shape.scatter" if is_many else "shape.fill")
        self.report(
            MASKED_ASSIGNMENT,
            target,
            advice,
            _STORE_COST,
            synchronizes=False,
            is_whole=is_whole,
            is_sure=is_sure,
        )

    def _indexed(self, owner: Tensor, node: ast.Subscript) -> Value:
        parts = _parts(node)
        split = next((i for i, part in enumerate(parts) if _is_ellipsis(part)), len(parts))
        cursor = _Cursor(owner.shape)
        for part in parts[:split]:
            self._step(cursor, part, node, owner)
        cursor.turn()
        for part in reversed(parts[split + 1 :]):
            self._step(cursor, part, node, owner)
        shape = cursor.finished()
        fixed = owner.is_fixed and cursor.is_fixed
        self.uses(owner.sources | cursor.used, node)
        is_sure = owner.is_sure or cursor.is_advanced
        return Tensor(shape, owner.kind, owner.on_host, fixed, is_sure, owner.copied)

    def _step(self, cursor: "_Cursor", part: ast.expr, node: ast.Subscript, owner: Tensor) -> None:
        if isinstance(part, ast.Slice):
            is_whole = part.lower is None and part.upper is None and part.step is None
            dim = self._sliced(cursor.shape, cursor.place, part, node)
            cursor.keep(dim, is_whole=is_whole)
            return
        if isinstance(part, ast.Constant) and part.value is None:
            cursor.add(ONE)
            return
        index = self.read(part)
        if isinstance(index, Tensor) and (index.kind or not _sounds_like_mask(part, index)):
            self._by_tensor(cursor, index, node, owner)
        elif isinstance(index, Items):
            number = ANY_LENGTH if index.elements is None else Dim(str(len(index.elements)))
            cursor.pick(closed(number._replace(sources=index.sources)))
        elif isinstance(index, Number):
            cursor.drop()
        elif isinstance(index, Foreign) and index.name in ("None", "torch.newaxis"):
            cursor.add(ONE)
        elif not owner.on_host and (index == POSSIBLE_MASK or _sounds_like_mask(part, index)):
            is_sure = owner.is_sure and index == POSSIBLE_MASK
            cursor.mask(None, Dim("?", self._selected(node, is_sure=is_sure).sources))
        else:
            cursor.lose(sources_of(index))

    def _by_tensor(
        self, cursor: "_Cursor", index: Tensor, node: ast.Subscript, owner: Tensor
    ) -> None:
        cursor.is_fixed = cursor.is_fixed and index.is_fixed
        if index.kind == "bool":
            sources = NO_SOURCES
            if not (index.on_host and owner.on_host):
                sources = self.report(
                    BOOLEAN_MASK,
                    node,
                    message("shape.keep-shape"),
                    _MASK_COST,
                    is_shape=not index.is_fixed,
                    is_whole=_are_alike(owner, index),
                    is_sure=owner.is_sure or index.is_sure,
                )
            sources = NO_SOURCES if index.is_fixed else sources
            cursor.mask(index.shape.rank, Dim("?", sources))
        elif _is_number_of_device(index):
            self.report(HOST_READ, node, message("shape.gather"), _READ_COST)
            cursor.drop()
        else:
            cursor.used |= index.sources
            cursor.pick(index.shape)

    def _sliced(self, shape: Shape, place: int, part: ast.Slice, node: ast.AST) -> Dim:
        """How long a slice is."""
        dim = shape.at(place)
        sources: Sources = dim.sources
        window = _window(part)
        if window is not None and part.lower is not None:
            if on_device(self.read(part.lower)):
                self.report(HOST_READ, node, message("shape.host-numbers"), _READ_COST)
            part = ast.Slice(upper=window)
        bounds = [self.read(bound) for bound in (part.lower, part.upper, part.step) if bound]
        for bound in bounds:
            if on_device(bound) and bound.is_fixed:
                self.report(HOST_READ, node, message("shape.host-numbers"), _READ_COST)
            elif may_be_on_device(bound):
                sources |= self.sized_by_data(node, synchronizes=True, is_sure=bound.is_sure)
            elif isinstance(bound, Number) and self.are_values(bound.sources):
                is_sure = self.are_sure(bound.sources)
                sources |= self.sized_by_data(node, synchronizes=False, is_sure=is_sure)
            elif isinstance(bound, Number):
                sources |= bound.sources
        if not bounds:
            return dim
        upper = bounds[0] if part.lower is None and part.step is None else None
        text = upper.text if isinstance(upper, Number) and not upper.text.startswith("-") else "?"
        return Dim(text, sources)

    def sized_by_data(self, node: ast.AST, *, synchronizes: bool, is_sure: bool) -> Sources:
        """Report a length that is a value which was read."""
        return self.report(
            SIZE_FROM_DATA,
            node,
            message("shape.fixed-size"),
            _SIZE_COST,
            synchronizes=synchronizes,
            is_shape=True,
            is_sure=is_sure,
        )

    def _length(self, shape: Shape, node: ast.expr, index: Value) -> Value:
        if isinstance(node, ast.Slice):
            lower, upper = self._bounds(node)
            is_known = not shape.is_open and node.step is None
            if is_known or (upper is not None and 0 <= (lower or 0) <= upper <= len(shape.lead)):
                return items_of(tuple(Number(*dim) for dim in shape.lead[lower:upper]))
            return Items(CONSTANT)
        number = index.value if isinstance(index, Number) else None
        return Number("?", shape.sources) if number is None else Number(*shape.at(number))

    def _element(self, owner: Items, node: ast.expr, index: Value) -> Value:
        if isinstance(node, ast.Slice):
            lower, upper = self._bounds(node)
            written = [part for part in (node.lower, node.upper) if part is not None]
            known = len(written) == sum(part is not None for part in (lower, upper))
            if owner.elements is not None and known and node.step is None:
                return items_of(owner.elements[lower:upper])
            return Items(owner.each, None, owner.sources)
        number = index.value if isinstance(index, Number) else None
        if owner.elements is not None and number is not None:
            inside = -len(owner.elements) <= number < len(owner.elements)
            return owner.elements[number] if inside else UNKNOWN
        return owner.each

    def _bounds(self, node: ast.Slice) -> tuple[int | None, int | None]:
        values = [self.read(bound) for bound in (node.lower, node.upper)]
        first, second = (v.value if isinstance(v, Number) else None for v in values)
        return first, second


def is_first_of_data(node: ast.Subscript) -> bool:
    """`x.data[0]`."""
    match node:
        case ast.Subscript(ast.Attribute(attr="data"), ast.Constant(0)):
            return True
    return False


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def entry_of(table: Table, key: Value) -> Value:
    """What a dictionary has under a key."""
    known = dict(table.entries)
    if isinstance(key, Foreign) and key.name in known:
        return known[key.name]
    rest = (table.each,) if table.each is not None else ()
    return any_of(rest if isinstance(key, Foreign) and key.name else table.parts)


def _window(part: ast.Slice) -> ast.expr | None:
    """How long `x[start : start + length]` is, wherever it starts."""
    upper = part.upper
    if part.lower is None or part.step is not None:
        return None
    if not isinstance(upper, ast.BinOp) or not isinstance(upper.op, ast.Add):
        return None
    start = ast.dump(part.lower)
    for first, second in ((upper.left, upper.right), (upper.right, upper.left)):
        if ast.dump(first) == start:
            return second
    return None


class _Cursor:
    """Walks along the dimensions of a shape while indices are applied to them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.place = 0
        self.is_fixed = True
        self.used: Sources = NO_SOURCES
        self._picked: list[Shape] = []
        self._picked_at = 0
        self._is_back = False

    @property
    def is_advanced(self) -> bool:
        return bool(self._picked)

    def turn(self) -> None:
        """Go on from the last dimension."""
        self.place, self._is_back = -1, True

    def keep(self, dim: Dim, *, is_whole: bool) -> None:
        """A slice."""
        if not is_whole:
            self.shape = self.shape.with_dim(self.place, dim)
        self._advance()

    def add(self, dim: Dim) -> None:
        """`None`."""
        self.shape = self.shape.inserted(self.place, dim)
        self._advance()

    def drop(self) -> None:
        """A number."""
        self.shape = self.shape.without(self.place)

    def pick(self, shape: Shape) -> None:
        """A tensor or list of numbers; several are taken together."""
        self._pick(shape)
        self.shape = self.shape.without(self.place)

    def _pick(self, shape: Shape) -> None:
        if not self._picked:
            self._picked_at = self.place
        self._picked.append(shape)

    def mask(self, rank: int | None, dim: Dim) -> None:
        """A mask selects from as many dimensions as it has."""
        if rank is None:
            # Where other dimensions are not known, those behind the mask are not either.
            lead = self.shape.lead[: self.place] if self.place >= 0 else ()
            behind = self.shape.lead[self.place + 1 :] if self.place >= 0 else ()
            hidden = self.shape.hidden.union(*(d.sources for d in behind))
            self.shape = Shape(lead, True, (), hidden)
            self._pick(closed(dim))
            return
        for _ in range(max(rank - 1, 0)):
            self.shape = self.shape.without(self.place)
        self.pick(closed(dim))

    def lose(self, sources: Sources) -> None:
        """Nobody knows what this index does."""
        self.shape = opened(self.shape.sources | sources)
        self._advance()

    def finished(self) -> Shape:
        """The shape behind the brackets."""
        shape = self.shape
        if self._picked:
            picked = broadcast(self._picked)
            if picked.is_open:
                return opened(shape.sources | picked.sources)
            for dim in reversed(picked.lead):
                shape = shape.inserted(self._picked_at, dim)
        return shape

    def _advance(self) -> None:
        self.place += -1 if self._is_back else 1


def _are_alike(owner: Tensor, mask: Tensor) -> bool:
    """Whether a mask surely has as many dimensions of the same lengths."""
    first, second = owner.shape, mask.shape
    texts = [dim.text for dim in first.lead]
    same = texts == [dim.text for dim in second.lead] and "?" not in texts
    return first.rank is not None and first.rank == second.rank and same


def _may_be_mask(value: Value) -> bool:
    """Whether an index is a mask that the device has, or very likely is."""
    is_mask = may_be_on_device(value) and value.kind == "bool" and not value.is_fixed
    return is_mask or value == POSSIBLE_MASK


def _sounds_like_mask(index: ast.expr, value: Value) -> bool:
    """Whether nothing is known of an index but a name that says that it is a mask."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        index = index.operand
    return value in (UNKNOWN, LIKELY) and _MASK.search(last_name(index)) is not None


def _values(node: ast.Subscript, index: Value) -> tuple[Value, ...]:
    """What the parts of an index are, of which the whole has been read."""
    if not isinstance(node.slice, ast.Tuple):
        return (index,)
    elements = index.elements if isinstance(index, Items) else None
    return elements or ()


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_number_of_device(value: Value) -> bool:
    """A whole number in a tensor without dimensions, which Python reads for an index."""
    return (
        isinstance(value, Tensor)
        and value.kind == "int"
        and value.shape == SCALAR
        and not value.on_host
    )
