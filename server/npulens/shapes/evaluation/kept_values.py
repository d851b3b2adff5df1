"""What an instance keeps of tensors that a method is given: `losses.update(loss, count)`."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from string import Formatter

from npulens.catalog.project_model import Keeper, KeptArguments
from npulens.graphs.definitions import ClassHere, Definitions, FunctionHere, inner_statements
from npulens.shapes.evaluation.callers import named_parameters
from npulens.shapes.values.shape_values import LIKELY, Tensor, Value, may_be_on_device
from npulens.syntax.bindings import bindings_of
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.scopes import ModuleNames, ModuleScope
from npulens.syntax.values import dotted_name

_KEEPING = frozenset({"detach", "clone", "float", "double"})
"""Methods of tensors that return a tensor where the first one is."""
_OF_METERS = ("val", "avg", "sum")
UPDATING = "update"
"""The method by which meters are given values, whatever their class."""


def kept_by(method: FunctionHere, given: Mapping[str, Value]) -> dict[str, Tensor]:
    """The attributes that are tensors of the device after a method of an instance was called.

    A tensor gets there as it is or by arithmetic, as in `self.sum += value * count`; what
    `.item()` or `float` have read is none any more.

    Args:
        method: The method.
        given: What its parameters hold.
    """
    held = {name: value for name, value in given.items() if may_be_on_device(value)}
    if not held or method.receiver is None:
        return {}
    in_order = sorted(inner_statements(method.node.body), key=lambda node: node.lineno)
    for node in in_order:
        match node:
            case ast.Assign([target], value):
                _assign(target, _carried(value, held), value, held)
            case ast.AugAssign(target, _, value):
                _assign(target, _carried(value, held) or _carried(target, held), value, held)
    start = f"{method.receiver}."
    return {name.removeprefix(start): v for name, v in held.items() if name.startswith(start)}


def keepers_in(text: str) -> Iterator[Keeper]:
    """The classes of a text with what their methods keep of their arguments."""
    tree = tree_or_none(text)
    if tree is None:
        return
    definitions = Definitions()
    definitions.add(tree.body, ModuleScope(ModuleNames([bindings_of(tree.body, [])]), 0))
    for name, owner in definitions.classes.items():
        methods = tuple(_kept_arguments(owner))
        if methods:
            yield Keeper(name, methods)


def _kept_arguments(owner: ClassHere) -> Iterator[KeptArguments]:
    for name, method in owner.methods.items():
        if name.startswith("__"):
            continue
        given = [each.arg for each in method.parameters]
        pairs = [(kept, each) for each in given for kept in kept_by(method, {each: LIKELY})]
        if pairs or name == UPDATING:
            yield KeptArguments(name, tuple(named_parameters(method)), tuple(pairs))


def kept_elsewhere(
    keeper: Keeper, method: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> dict[str, Tensor]:
    """The attributes that are tensors after a method of a class of another module was called."""
    known = next((each for each in keeper.methods if each.method == method), None)
    if known is None:
        return {}
    given = {**dict(zip(known.parameters, arguments, strict=False)), **keywords}
    found: dict[str, Tensor] = {}
    for attribute, parameter in known.kept:
        value = given.get(parameter)
        if value is not None and may_be_on_device(value):
            found[attribute] = Tensor(is_sure=value.is_sure)
    return found


def kept_by_meter(value: Value) -> dict[str, Tensor]:
    """What a meter of another module very likely keeps of the first argument of `update`."""
    return dict.fromkeys(_OF_METERS, LIKELY) if may_be_on_device(value) else {}


def fields_of(text: str, name: str) -> list[str]:
    """The attributes that a text to be formatted writes of something: `val` of `{loss.val:.3f}`."""
    try:
        fields = [field for _, field, *_ in Formatter().parse(text) if field]
    except ValueError:
        return []
    return [field.removeprefix(f"{name}.") for field in fields if field.startswith(f"{name}.")]


def _assign(
    target: ast.expr, value: Tensor | None, node: ast.expr, held: dict[str, Tensor]
) -> None:
    name = _written(target)
    if value is not None and name:
        held[name] = value
    elif not isinstance(node, ast.Constant):  # a constant is for want of elements
        held.pop(name, None)


def _carried(node: ast.expr, held: Mapping[str, Tensor]) -> Tensor | None:
    """The tensor that an expression is, or is computed from on the device."""
    match node:
        case ast.BinOp(left, _, right) | ast.IfExp(body=left, orelse=right):
            part = _carried(left, held) or _carried(right, held)
            return None if part is None else Tensor(is_sure=part.is_sure)
        case ast.Call(ast.Attribute(owner, name)) if name in _KEEPING:
            return _carried(owner, held)
        case ast.Attribute(owner, "data"):
            return _carried(owner, held)
    return held.get(_written(node))


def _written(node: ast.expr) -> str:
    name = dotted_name(node)
    return "" if name is None else ".".join((name.root, *name.path))
