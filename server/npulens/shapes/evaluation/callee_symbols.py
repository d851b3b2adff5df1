"""What the lengths that a called function names are called where it is called."""

import re
from collections.abc import Callable, Iterable, Mapping

from npulens.shapes.values.shape_values import Items, Number, Size, Table, Tensor, Value

_WORD = re.compile(r"[A-Za-z_]\w*")
Rename = Callable[[str], str]


def names_in(values: Iterable[Value]) -> frozenset[str]:
    """The names in the lengths of values."""
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(_WORD.findall(text))
        return text

    for value in values:
        renamed(value, note)
    return frozenset(found)


def renaming(shared: frozenset[str], given: Mapping[str, str]) -> Rename:
    """How to read lengths of a called function.

    Args:
        shared: Names that mean the same for the caller: it passed them, or has the same `self`.
        given: Names of the called function with what they are for the caller.
    """

    def rename(text: str) -> str:
        if text == "?":
            return text
        parts = [_read(word, shared, given) for word in _WORD.findall(text)]
        if "?" in parts or (len(parts) > 1 and not all(map(_is_simple, parts))):
            return "?"
        places = iter(parts)
        return _WORD.sub(lambda _: next(places), text)

    return rename


def _is_simple(text: str) -> bool:
    return text.isidentifier() or text.isdecimal()


def _read(word: str, shared: frozenset[str], given: Mapping[str, str]) -> str:
    if word not in given:
        return word if word in shared else "?"
    # Of a name that the caller passed, too, nobody knows which of the two it is.
    return given[word] if word not in shared or given[word] == word else "?"


def renamed(value: Value, rename: Rename) -> Value:
    """A value whose lengths are called otherwise."""
    match value:
        case Tensor():
            shape = value.shape.renamed(rename)
            return value if shape == value.shape else value._replace(shape=shape)
        case Number():
            return value if value.value is not None else value._replace(text=_number(value, rename))
        case Size():
            return Size(value.shape.renamed(rename))
        case Items():
            elements = value.elements
            if elements is not None:
                elements = tuple(renamed(each, rename) for each in elements)
            return value._replace(each=renamed(value.each, rename), elements=elements)
        case Table():
            entries = tuple((key, renamed(each, rename)) for key, each in value.entries)
            each = None if value.each is None else renamed(value.each, rename)
            return Table(entries, each)
    return value


def _number(value: Number, rename: Rename) -> str:
    return value.text if value.text in ("True", "False", "random") else rename(value.text)
