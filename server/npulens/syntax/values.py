"""What an expression represents, as far as names and string constants show.

Two kinds of values: an `Expression` is read off the tree alone, so it can be compared between two
versions of a statement; a `Value` is what it means in its scope.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MAX_PARTS = 40
"""Longer sums and names are not followed."""
IMPORTERS = frozenset({"import_module", "__import__"})
"""Functions that import the module that they are given."""


class Name(NamedTuple):
    """A dotted name as written: `c.synchronize`."""

    root: str
    path: tuple[str, ...] = ()


class Imported(NamedTuple):
    """An imported module or member: `torch.cuda`."""

    qualified: str


class Called(NamedTuple):
    """The result of calling a name."""

    callee: Name


class Text(NamedTuple):
    """A string constant; `complete` is false where an unknown part follows."""

    text: str
    complete: bool = True


class Joined(NamedTuple):
    """Strings put together: f-strings, `+`, `%`, `.format`."""

    parts: tuple["Expression", ...]


class Either(NamedTuple):
    """One of several, decided at run time."""

    options: tuple["Expression", ...]


class Defined(NamedTuple):
    """A function or class of this file; for a class, its bases and class-level names."""

    name: str
    is_class: bool
    bases: tuple[Name, ...] = ()
    members: tuple[tuple[str, "Expression"], ...] = ()
    parameters: tuple[str, ...] = ()


class Nothing(NamedTuple):
    """`None`: what replaces a module that could not be imported."""


class Unknown(NamedTuple):
    """Anything else."""


Expression = Name | Imported | Called | Text | Joined | Either | Defined | Nothing | Unknown
UNKNOWN = Unknown()


def dotted_name(node: ast.expr) -> Name | None:
    """`a.b.c` as a name, `None` for anything that is not plain attributes of a name."""
    if node.__class__ is ast.Name:
        return Name(node.id, ())
    path: list[str] = []
    while node.__class__ is ast.Attribute:
        path.append(node.attr)
        node = node.value
    if node.__class__ is not ast.Name:
        return None
    return Name(node.id, tuple(path[::-1]))


def root_name(node: ast.expr) -> str:
    """`a` of `a.b.c`, nothing for what is not plain attributes of a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def names_around(qualified: str) -> Iterator[str]:
    """`a.b.c`, `a.b` and `a` of `a.b.c`."""
    while qualified:
        yield qualified
        qualified = qualified.rpartition(".")[0]


def is_none(node: ast.expr | None) -> bool:
    """Whether an expression is the constant `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`, and of whatever precedes that dot; nothing for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


def expression(node: ast.expr | None, depth: int = 0) -> Expression:
    """What the tree alone says of an expression."""
    if node is None or depth > MAX_PARTS:
        return UNKNOWN
    reader = _READERS.get(type(node))
    return UNKNOWN if reader is None else reader(node, depth + 1)


def _name(node: ast.expr, depth: int) -> Expression:
    return dotted_name(node) or UNKNOWN


def _constant(node: ast.Constant, depth: int) -> Expression:
    if isinstance(node.value, str):
        return Text(node.value)
    return Nothing() if node.value is None else UNKNOWN


def _joined_string(node: ast.JoinedStr, depth: int) -> Expression:
    return Joined(tuple(expression(part, depth) for part in node.values[:MAX_PARTS]))


def _formatted(node: ast.FormattedValue, depth: int) -> Expression:
    return expression(node.value, depth) if node.format_spec is None else UNKNOWN


def _binary(node: ast.BinOp, depth: int) -> Expression:
    if isinstance(node.op, ast.Add):
        return Joined((expression(node.left, depth), expression(node.right, depth)))
    if isinstance(node.op, ast.Mod):
        arguments = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _filled(node.left, "%s", arguments, depth)
    return UNKNOWN


def _filled(template: ast.expr, mark: str, arguments: list[ast.expr], depth: int) -> Expression:
    """A template string with its first few plain marks replaced."""
    if not (isinstance(template, ast.Constant) and isinstance(template.value, str)):
        return UNKNOWN
    segments = template.value.split(mark)
    if len(segments) - 1 > len(arguments):
        return UNKNOWN
    parts: list[Expression] = [Text(segments[0])]
    for argument, segment in zip(arguments, segments[1:], strict=False):
        parts += [expression(argument, depth), Text(segment)]
    return Joined(tuple(parts[:MAX_PARTS]))


def _call(node: ast.Call, depth: int) -> Expression:
    callee = node.func
    if isinstance(callee, ast.Attribute) and callee.attr == "format" and not node.keywords:
        filled = _filled(callee.value, "{}", node.args, depth)
        if filled is not UNKNOWN:
            return filled
    literal = literal_attribute(node)
    if literal is not None:
        return literal
    name = dotted_name(callee)
    if name is None:
        return UNKNOWN
    if (name.root, *name.path)[-1] in IMPORTERS:
        module = node.args[0] if node.args else None
        if isinstance(module, ast.Constant) and isinstance(module.value, str):
            return Imported(module.value)
    return Called(name)


def literal_attribute(node: ast.Call) -> Name | None:
    """`getattr(torch, "cuda")` as the name `torch.cuda`."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) >= 2):
        return None
    owner, attribute = dotted_name(node.args[0]), node.args[1]
    if owner is None or not isinstance(attribute, ast.Constant):
        return None
    if not isinstance(attribute.value, str) or not attribute.value.isidentifier():
        return None
    return Name(owner.root, (*owner.path, attribute.value))


def _conditional(node: ast.IfExp, depth: int) -> Expression:
    return Either((expression(node.body, depth), expression(node.orelse, depth)))


def _boolean(node: ast.BoolOp, depth: int) -> Expression:
    return Either(tuple(expression(value, depth) for value in node.values[:MAX_PARTS]))


def _walrus(node: ast.NamedExpr, depth: int) -> Expression:
    return expression(node.value, depth)


_READERS: dict[type[ast.expr], Callable[[Any, int], Expression]] = {
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Constant: _constant,
    ast.JoinedStr: _joined_string,
    ast.FormattedValue: _formatted,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.IfExp: _conditional,
    ast.BoolOp: _boolean,
    ast.NamedExpr: _walrus,
}
