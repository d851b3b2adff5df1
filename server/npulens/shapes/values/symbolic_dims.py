"""Shapes on symbols: what is known of each dimension of a tensor, and which depend on data."""

import ast
from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

Sources = frozenset[ast.AST]
"""The nodes that made something depend on the values of tensors."""
NO_SOURCES: Sources = frozenset()


class Dim(NamedTuple):
    """The length of one dimension.

    Attributes:
        text: How it reads: a number, a name or an expression of the code, `?` if not known.
        sources: What made it depend on data; empty if it does not.
        is_rest: It is what such a length leaves of a fixed one: `size - kept.shape[0]`.
    """

    text: str = "?"
    sources: Sources = NO_SOURCES
    is_rest: bool = False


ANY_LENGTH = Dim()
ONE = Dim("1")


class Shape(NamedTuple):
    """The dimensions of a tensor, first ones and last ones where those between are not known.

    Attributes:
        lead: The first dimensions; all of them unless the shape is open.
        is_open: Whether there may be more behind `lead`.
        tail: The last dimensions of an open shape.
        hidden: What made dimensions depend on data of which it is not known which they are.
    """

    lead: tuple[Dim, ...] = ()
    is_open: bool = True
    tail: tuple[Dim, ...] = ()
    hidden: Sources = NO_SOURCES

    @property
    def sources(self) -> Sources:
        """Everything that made it depend on data."""
        found = self.hidden
        for dim in (*self.lead, *self.tail):
            if dim.sources:
                found |= dim.sources
        return found

    @property
    def rank(self) -> int | None:
        return None if self.is_open else len(self.lead)

    @property
    def is_unknown(self) -> bool:
        return self.is_open and not self.lead and not self.tail and not self.hidden

    def at(self, index: int) -> Dim:
        """One dimension, counted from the end if negative."""
        if not self.is_open:
            inside = -len(self.lead) <= index < len(self.lead)
            return self.lead[index] if inside else ANY_LENGTH
        if 0 <= index < len(self.lead):
            return self.lead[index]
        if -len(self.tail) <= index < 0:
            return self.tail[index]
        return Dim("?", self.hidden)

    def with_dim(self, index: int, dim: Dim) -> "Shape":
        """The shape with another length at one place."""
        part, offset = self._place(index)
        if part is None:
            shape = self._blurred(index)
            return shape._replace(hidden=shape.hidden | dim.sources)
        changed = (*part[:offset], dim, *part[offset + 1 :])
        return self._with_part(index, changed)

    def without(self, index: int) -> "Shape":
        """The shape with one dimension less."""
        part, offset = self._place(index)
        if part is None:
            return self._blurred(index)
        return self._with_part(index, (*part[:offset], *part[offset + 1 :]))

    def inserted(self, index: int, dim: Dim) -> "Shape":
        """The shape with one dimension more, which is at this place then."""
        if not self.is_open or 0 <= index <= len(self.lead):
            place = index if index >= 0 else len(self.lead) + 1 + index
            return self._replace(lead=(*self.lead[:place], dim, *self.lead[place:]))
        if -1 - len(self.tail) <= index < 0:
            place = len(self.tail) + 1 + index
            return self._replace(tail=(*self.tail[:place], dim, *self.tail[place:]))
        shape = self._blurred(index)
        return shape._replace(hidden=shape.hidden | dim.sources)

    def unnamed(self) -> "Shape":
        """The shape without what its lengths are called, as where it may be another one."""
        return self.renamed(lambda text: "?")

    def renamed(self, rename: Callable[[str], str]) -> "Shape":
        """The shape with lengths that are called something else."""
        lead, tail = (
            tuple(dim._replace(text=rename(dim.text)) for dim in part)
            for part in (self.lead, self.tail)
        )
        return self._replace(lead=lead, tail=tail)

    def described(self) -> str:
        """`[B, ?, 4]`; an ellipsis where dimensions are not known."""
        texts = ["?" if dim.sources else dim.text for dim in self.lead]
        if self.is_open:
            texts.append("...")
            behind = ["?" if dim.sources else dim.text for dim in self.tail]
            # Of an open shape, that there is some length more says nothing.
            known = next((i for i, text in enumerate(behind) if text != "?"), 0)
            texts += behind if self.sources else behind[known:]
        return f"[{', '.join(texts)}]"

    def _blurred(self, index: int) -> "Shape":
        """An open shape where a place is changed that may be any: those seen from the other end."""
        if not self.is_open:
            return self
        if index >= 0:
            return self._replace(tail=tuple(dim._replace(text="?") for dim in self.tail))
        return self._replace(lead=tuple(dim._replace(text="?") for dim in self.lead))

    def _place(self, index: int) -> tuple[tuple[Dim, ...] | None, int]:
        part = self.lead if index >= 0 or not self.is_open else self.tail
        offset = index if index >= 0 else len(part) + index
        return (part, offset) if 0 <= offset < len(part) else (None, 0)

    def _with_part(self, index: int, part: tuple[Dim, ...]) -> "Shape":
        is_lead = index >= 0 or not self.is_open
        return self._replace(lead=part) if is_lead else self._replace(tail=part)


ANY_SHAPE = Shape()
SCALAR = Shape((), False)


def closed(*dims: Dim) -> Shape:
    """A shape that is known in full."""
    return Shape(dims, False)


def opened(sources: Sources) -> Shape:
    """A shape of which only is known what it depends on."""
    return Shape(hidden=sources) if sources else ANY_SHAPE


def joined(first: Shape, second: Shape) -> Shape:
    """A shape that is one or the other."""
    if first == second:
        return first
    if first.is_unknown or second.is_unknown:
        return (second if first.is_unknown else first).unnamed()._replace(is_open=True)
    if first.rank is not None and first.rank == second.rank:
        return closed(*map(_either, first.lead, second.lead))
    lead = tuple(map(_either, first.lead, second.lead)) if first.is_open and second.is_open else ()
    kept = frozenset().union(*(dim.sources for dim in lead))
    hidden = (first.sources | second.sources) - kept
    return Shape(lead, hidden=hidden | first.hidden | second.hidden)


def _either(first: Dim, second: Dim) -> Dim:
    if first == second:
        return first
    sources = first.sources | second.sources
    return Dim(first.text if first.text == second.text else "?", sources)


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape of what is computed element by element."""
    known = tuple(shapes)
    return reduce(_broadcast, known) if known else ANY_SHAPE


def _broadcast(first: Shape, second: Shape) -> Shape:
    if first == second or second == SCALAR:
        return first
    if first == SCALAR:
        return second
    if first.is_unknown or second.is_unknown:
        known = second if first.is_unknown else first
        # Of what depends on data the form is kept: whatever meets it most likely has the same.
        if known.sources:
            return known
        return Shape(tail=tuple(map(_stretched, known.tail if known.is_open else known.lead)))
    if not first.is_open and not second.is_open:
        long, short = sorted((first.lead, second.lead), key=len, reverse=True)
        start = len(long) - len(short)
        return closed(*long[:start], *map(_wider, long[start:], short))
    if first.lead and second.lead and first.is_open and second.is_open:
        lead = tuple(map(_wider, first.lead, second.lead))
        inside = frozenset().union(*(dim.sources for dim in lead))
        return Shape(lead, hidden=(first.sources | second.sources) - inside)
    if first.sources and second.sources:
        return opened(first.sources | second.sources)
    if first.sources or second.sources:
        return first if first.sources else second
    return _aligned(first, second)


def _aligned(first: Shape, second: Shape) -> Shape:
    """Shapes of which at least one is open, from their last dimensions on."""
    ends = [shape.tail if shape.is_open else shape.lead for shape in (first, second)]
    long, short = sorted(ends, key=len, reverse=True)
    split = len(long) - len(short)
    is_whole = not (first if short is ends[0] else second).is_open
    before = long[:split] if is_whole else tuple(map(_stretched, long[:split]))
    return Shape(tail=(*before, *map(_wider, long[split:], short)))


def _stretched(dim: Dim) -> Dim:
    """A dimension that meets one that is not known: a single element is repeated."""
    return ANY_LENGTH if dim.text == "1" else dim


def _wider(first: Dim, second: Dim) -> Dim:
    if first == second or second.text == "1":
        return first
    if first.text == "1":
        return second
    text = first.text if first.text != "?" else second.text
    return Dim(text, first.sources | second.sources)
