"""What the calls in a class show of the parameters of its methods."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from npulens.graphs.definitions import ClassHere, FunctionHere
from npulens.shapes.values.shape_values import UNKNOWN, Tensor, Value, is_on_host
from npulens.syntax.bindings import with_defaults
from npulens.syntax.values import is_none
from npulens.syntax.walking import inner_nodes

_OF_DATA_SETS = frozenset({"map", "filter", "apply", "set_transform", "with_transform"})
_ON_HOST = re.compile(r"collat|transform|worker|tokeniz|metric|preprocess|\Afunction\Z|\Akey\Z")
"""Parameters for what is done with examples and predictions on the host."""


def given_parameters(method: FunctionHere) -> frozenset[str]:
    """Parameters that default to `None` and that each call of a private method fills.

    A method is private if its name begins with one underscore: it is called in its class alone.
    """
    owner, name = method.owner, method.node.name
    is_private = name.startswith("_") and not name.startswith("__")
    defaults = _none_by_default(method.node.args) if is_private else frozenset[str]()
    if owner is None or not defaults or method.receiver is None:
        return frozenset()
    given: set[str] | None = None
    for caller, call in _uses(owner).get(name, ()):
        optional = _none_by_default(caller.node.args)
        filled = set() if call is None else set(_filled(call, method, optional))
        given = filled if given is None else given & filled
    return frozenset(given or ()) & defaults


def arguments_from_host(
    method: FunctionHere, passed: Mapping[ast.Call, Mapping[str, Value]]
) -> dict[str, Value]:
    """Parameters that each call in the class of a method fills with a tensor of the host.

    What is passed is known of calls that were evaluated.
    """
    owner, name = method.owner, method.node.name
    if owner is None or not passed:
        return {}
    first, *others = passed.values()
    found: dict[str, Value] = {
        name: Tensor(kind=value.kind, on_host=True)
        for name, value in first.items()
        if isinstance(value, Tensor)
        and all(is_on_host(given.get(name, UNKNOWN)) for given in (first, *others))
    }
    is_all = found and all(call in passed for _, call in _uses(owner).get(name, ()))
    return found if is_all else {}


def named_parameters(method: FunctionHere) -> list[str]:
    """The parameters that can be given by place, without `self`."""
    names = [argument.arg for argument in method.positional]
    return names if method.receiver is None else names[1:]


def given_to_data(node: ast.AST) -> Iterator[str]:
    """Names of functions that loaders and data sets are given, which call them on the host."""
    for part in inner_nodes(node):
        if isinstance(part, ast.Call):
            if getattr(part.func, "attr", "") in _OF_DATA_SETS:
                yield from (each.id for each in part.args if isinstance(each, ast.Name))
            for keyword in part.keywords:
                is_of_data = _ON_HOST.search(keyword.arg or "") is not None
                if is_of_data and isinstance(keyword.value, ast.Name):
                    yield keyword.value.id


def _none_by_default(arguments: ast.arguments) -> frozenset[str]:
    return frozenset(p.arg for p, default in with_defaults(arguments) if is_none(default))


@lru_cache(maxsize=16)
def _uses(owner: ClassHere) -> Mapping[str, Sequence[tuple[FunctionHere, ast.Call | None]]]:
    """Calls of methods by their names, with who calls, and `None` where one is passed on."""
    found: dict[str, list[tuple[FunctionHere, ast.Call | None]]] = {}
    for caller in owner.methods.values():
        called: set[ast.AST] = set()
        for node in inner_nodes(caller.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called.add(node.func)
                found.setdefault(node.func.attr, []).append((caller, node))
            elif isinstance(node, ast.Attribute) and node not in called:
                found.setdefault(node.attr, []).append((caller, None))
    return found


def _filled(call: ast.Call, method: FunctionHere, optional: frozenset[str]) -> Iterator[str]:
    """The parameters that a call gives a value that is not `None`."""
    for name, value in zip(named_parameters(method), call.args, strict=False):
        if isinstance(value, ast.Starred):
            return
        if not _may_be_none(value, optional):
            yield name
    for keyword in call.keywords:
        if keyword.arg is not None and not _may_be_none(keyword.value, optional):
            yield keyword.arg


def _may_be_none(node: ast.expr, optional: frozenset[str]) -> bool:
    """Whether `None` is written, or the parameter of the caller that defaults to it."""
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    return any(is_none(part) or getattr(part, "id", "") in optional for part in parts)


def any_tested(node: ast.expr) -> str:
    """`mask` of the condition `mask.any()`; empty for another one."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(name), "any"), args=[], keywords=[]):
            return name
    return ""


def element_tested(node: ast.expr) -> str:
    """`x` of the condition `x[i] is not None`; empty for another one."""
    match node:
        case ast.Compare(ast.Subscript(ast.Name(name)), [ast.IsNot()], [ast.Constant(None)]):
            return name
    return ""


def none_tested(node: ast.expr) -> str:
    """`x` of the condition `x is None`; empty for another one."""
    match node:
        case ast.Compare(ast.Name(name), [ast.Is(), *_], [ast.Constant(None), *_]):
            return name
    return ""
