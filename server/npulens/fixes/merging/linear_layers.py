"""Linear layers that a class makes, and whether two of them are made alike."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst
from libcst import matchers as m

from npulens.fixes.merging.joined_module import JoinedModule, dotted, found_in

_OWN = m.Attribute(value=m.Name("self"), attr=m.Name())
_MADE = m.SimpleStatementLine(
    [m.Assign([m.AssignTarget(_OWN)], m.Call()) | m.AnnAssign(_OWN, value=m.Call())]
)
_PARAMETERS = ("in_features", "out_features", "bias", "device", "dtype")
_GIVEN_SELF = m.Call(_OWN) | m.Call(args=[m.ZeroOrMore(), m.Arg(m.Name("self")), m.ZeroOrMore()])
"""What may change attributes of `self`: a method of it, or what it is given to."""
_CHANGES = frozenset({"update", "pop", "setdefault", "clear"})
_TOKEN = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|\w+|[^\w\s]")


class Layer(NamedTuple):
    """A linear layer that a class makes: `self.name = nn.Linear(...)` in its `__init__`.

    Attributes:
        target: What it is assigned to.
        at: The number of the statement in `__init__`.
    """

    name: str
    target: cst.Attribute
    statement: cst.SimpleStatementLine
    call: cst.Call
    at: int


def layers_of(index: JoinedModule, owner: cst.ClassDef) -> Iterator[Layer]:
    """The layers that statements of `__init__` make without any condition."""
    for at, statement in enumerate(_init_of(owner)):
        if not m.matches(statement, _MADE):
            continue
        assert isinstance(statement, cst.SimpleStatementLine)
        target, call = target_and_value(statement.body[0])
        assert isinstance(target, cst.Attribute) and isinstance(call, cst.Call)
        if index.means(call.func, "torch.nn.Linear", "torch.nn.modules.linear.Linear"):
            yield Layer(target.attr.value, target, statement, call, at)


def are_alike(index: JoinedModule, owner: cst.ClassDef, first: Layer, second: Layer) -> bool:
    """Whether both get the same arguments, which nothing changes between them."""
    arguments = _bound(index, first.call)
    if arguments is None or arguments != _bound(index, second.call):
        return False
    if out_features(first.call) is None or not all(map(_is_repeatable, _values(first.call))):
        return False
    begin, end = sorted((first.at, second.at))
    between = _init_of(owner)[begin + 1 : end]
    return _read(first.call).isdisjoint(_changed(index, between))


def out_features(call: cst.Call) -> int | None:
    """Which argument of `nn.Linear` says how wide its output is."""
    for at, each in enumerate(call.args):
        if each.keyword.value == "out_features" if each.keyword else at == 1 and not each.star:
            return at
    return None


def target_and_value(
    statement: cst.CSTNode,
) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """What an assignment of one target assigns to what."""
    assert isinstance(statement, (cst.Assign, cst.AnnAssign))
    if isinstance(statement, cst.Assign):
        return statement.targets[0].target, statement.value
    return statement.target, statement.value


def _init_of(owner: cst.ClassDef) -> Sequence[cst.CSTNode]:
    for method in owner.body.body:
        if isinstance(method, cst.FunctionDef) and method.name.value == "__init__":
            return method.body.body
    return ()


def _bound(index: JoinedModule, call: cst.Call) -> dict[str, list[str]] | None:
    """The arguments of `nn.Linear` by the names of its parameters, as tokens."""
    found = {"bias": ["True"]}
    for at, argument in enumerate(call.args):
        tokens = _TOKEN.findall(index.code(argument.value))
        if argument.star == "**":
            found["**" + "".join(tokens)] = tokens
        elif argument.keyword is not None:
            found[argument.keyword.value] = tokens
        elif argument.star or at >= len(_PARAMETERS):
            return None
        else:
            found[_PARAMETERS[at]] = tokens
    return found


def _values(call: cst.Call) -> Iterator[cst.BaseExpression]:
    return (argument.value for argument in call.args)


def _is_repeatable(value: cst.BaseExpression) -> bool:
    """Whether a value is the same each time: it calls but functions, which do not go on."""
    return all(
        isinstance(call.func, cst.Name) and call.func.value != "next"
        for call in found_in(value, cst.Call)
        if isinstance(call, cst.Call) and not m.matches(call.func, m.Attribute(m.Name("math")))
    )


def _read(call: cst.Call) -> set[str]:
    """What the arguments of a call read: names, and all that stands before a dot."""
    found: set[str] = set()
    for value in _values(call):
        for node in found_in(value, cst.Name, cst.Attribute):
            path = dotted(node)
            if path is not None:
                found.add(path)
    return found


def _changed(index: JoinedModule, statements: Sequence[cst.CSTNode]) -> Iterator[str]:
    """What statements bind, delete, or change as a dictionary or an object."""
    kinds = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
    for node in (each for statement in statements for each in found_in(statement, *kinds)):
        changed: cst.CSTNode | None = None
        if isinstance(node, cst.Call):
            if m.matches(node, _GIVEN_SELF):
                yield "self"
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CHANGES:
                changed = node.func.value
        elif index.is_changed(node):
            changed = node.value if isinstance(node, cst.Subscript) else node
        path = dotted(changed) if changed is not None else None
        if path is not None:
            yield path
