"""What assignments do to names."""

import ast
import re
from typing import TypeGuard

from npulens.shapes.evaluation.callee_symbols import renamed
from npulens.shapes.evaluation.shape_calls import Calls
from npulens.shapes.values.shape_values import (
    NOTHING,
    UNKNOWN,
    Items,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    are_deep,
    either,
    element_of,
    items_of,
    with_value,
)
from npulens.shapes.values.symbolic_dims import closed

_LENGTH = re.compile(r"(?:\A|_)(?:size|len|length)\Z")


class Binding(Calls):
    """The part of an evaluation that is about names."""

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign a value to a target."""
        if isinstance(target, ast.Name):
            self._forget_parts(target.id)
            self.rebound.add(target.id)
            if isinstance(value, Items):
                self.made_at[target.id] = len(self.control)
            if (isinstance(value, Number) or value is UNKNOWN) and not self.issue(
                target.id, target
            ):
                value = renamed(value, self.told)
            self.names[target.id] = value
            self.session.recorder.assign(target, self.function, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element, part in zip(target.elts, self._unpacked(target, value), strict=True):
                self.bind(element, part)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            self.with_parts.add(target.value.id)
            self.names[f"{target.value.id}.{target.attr}"] = value
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Subscript):
            self._bind_part(target, value)

    def _bind_part(self, target: ast.Subscript, value: Value) -> None:
        self.store(target, value)
        if not isinstance(target.value, ast.Name):
            return
        name = target.value.id
        owner = self.names.get(name, UNKNOWN)
        if isinstance(owner, Tensor):
            self.names[name] = owner._replace(is_fixed=False)
        elif isinstance(owner, Table):
            self.names[name] = self._with_entry(owner, target.slice, value)
        elif isinstance(owner, Items):
            # Places that `[None] * n` keeps are filled.
            each = value if owner.each == NOTHING else either(owner.each, value)
            self.names[name] = Items(each, None, owner.sources)

    def _with_entry(self, table: Table, key: ast.expr, value: Value) -> Table:
        if are_deep([value]):
            value = UNKNOWN
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return table._replace(entries=tuple({**dict(table.entries), key.value: value}.items()))
        return with_value(table, value)

    def _forget_parts(self, name: str) -> None:
        if name not in self.with_parts:
            return
        start = f"{name}."
        for key in [key for key in self.names if key.startswith(start)]:
            del self.names[key]

    def _unpacked(self, target: ast.Tuple | ast.List, value: Value) -> list[Value]:
        count = len(target.elts)
        has_rest = any(isinstance(element, ast.Starred) for element in target.elts)
        elements = value.elements if isinstance(value, Items) else None
        if elements is not None and len(elements) == count and not has_rest:
            return list(elements)
        if has_rest:
            return _with_rest(target.elts, value, elements)
        if isinstance(value, Size) and not has_rest:
            lengths = [Number(*value.shape.at(index)) for index in range(count)]
            texts = [getattr(element, "id", "?") for element in target.elts]
            return [
                length if length.text != "?" else length._replace(text=text)
                for length, text in zip(lengths, texts, strict=True)
            ]
        part = element_of(value)
        return [Number(e.id) if _is_length(e, part) else part for e in target.elts]

    def name_dimensions(self, target: ast.expr, value: ast.expr) -> None:
        """`B, N, C = x.shape` shows how many dimensions `x` has."""
        owner = _measured(value) if isinstance(target, ast.Tuple) else None
        tensor = None if owner is None else self.named(owner)
        if owner is None or not isinstance(tensor, Tensor) or not tensor.shape.is_open:
            return
        assert isinstance(target, ast.Tuple)
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) < len(target.elts):
            return
        dims = []
        for index, name in enumerate(names):
            dim = tensor.shape.at(index)
            if name == "_" and dim.text == "?":
                dim = tensor.shape.at(index - len(names))
            text = dim.text if dim.text != "?" else name
            is_said = text != "_" and (text != name or name not in self.stale)
            dims.append(dim._replace(text=text if is_said else "?"))
        self.names[owner] = tensor._replace(shape=closed(*dims))
        self._note_parameter(owner)

    def _note_parameter(self, name: str) -> None:
        """Note the shape of a parameter that still is what the caller gave."""
        recorder = self.session.recorder
        is_requested = recorder.notes_reads and len(self.session.active) == 1
        parameters = (each.arg for each in self.function.parameters)
        if is_requested and name not in self.rebound and name in parameters:
            recorder.parameters.setdefault(name, self.names[name])


def _with_rest(
    targets: list[ast.expr], value: Value, elements: tuple[Value, ...] | None
) -> list[Value]:
    """The parts of `*first, last = value`; what has the star is a list."""
    at = next(i for i, target in enumerate(targets) if isinstance(target, ast.Starred))
    behind = len(targets) - at - 1
    if elements is None or len(elements) < len(targets) - 1:
        part = element_of(value)
        return [Items(part) if index == at else part for index in range(len(targets))]
    end = len(elements) - behind
    return [*elements[:at], items_of(elements[at:end]), *elements[end:]]


def _measured(node: ast.expr) -> str | None:
    """`x` of `x.shape` and `x.size()`."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(name), "size"), []):
            return name
        case ast.Attribute(ast.Name(name), "shape"):
            return name
    return None


def _is_length(target: ast.expr, part: Value) -> TypeGuard[ast.Name]:
    """Whether a part of something unknown is a number, as its name says: `batch_size`."""
    return (
        isinstance(part, Tensor)
        and isinstance(target, ast.Name)
        and _LENGTH.search(target.id) is not None
    )
