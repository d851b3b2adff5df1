"""What expressions mean: objects of libraries, strings, definitions of the same file."""

import ast
import builtins
from functools import lru_cache
from typing import NamedTuple

from npulens.syntax.bindings import Place, class_definition
from npulens.syntax.other_modules import member_of
from npulens.syntax.scopes import (
    MAX_VALUES,
    ClassScope,
    Scope,
    lookup,
    module_of,
    receiver_class,
)
from npulens.syntax.values import (
    Called,
    Defined,
    Either,
    Expression,
    Imported,
    Joined,
    Name,
    Nothing,
    Text,
    expression,
)

_MAX_STEPS = 64
"""How many names are looked up to answer one question; names may be bound to each other."""

_BUILTINS = frozenset(dir(builtins))
_WITH_SUCH_NAMES = frozenset({"torch", "numpy", "math", "cmath", "os", "jax", "cupy", "tensorflow"})
"""Packages whose star imports bring functions that are called as some of Python's."""

_SAME_MODULE = {
    "torch_npu.npu": "torch.npu",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
}


class _Budget:
    """How many more names may be looked up for one question."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MAX_STEPS


class Qualified(NamedTuple):
    """An object of a library, by its full name."""

    name: str


class Instance(NamedTuple):
    """What a call of a library's class or function, or of a member of its result, returned."""

    name: str


class Member(NamedTuple):
    """An attribute of such a result, by the full name of what was called."""

    name: str


class Literal(NamedTuple):
    """A string; `complete` is false if its end is not known."""

    text: str
    complete: bool


class Local(NamedTuple):
    """A function or class of this file."""

    definition: Defined


class LocalInstance(NamedTuple):
    """What a call of a class or function of this file returned."""

    definition: Defined


class Anything(NamedTuple):
    """Not known."""


Value = Qualified | Instance | Member | Literal | Local | LocalInstance | Anything


ANYTHING = Anything()


def resolve(node: ast.expr, scope: Scope) -> list[Value]:
    """What an expression may represent where it is written, likeliest first."""
    place = (node.lineno, node.col_offset)
    written = expression(node)
    if isinstance(written, Name):
        return resolve_name(written, scope, place)
    return list(dict.fromkeys(_meaning(written, scope, place, _Budget())))


def resolve_name(name: Name, scope: Scope, place: Place | None) -> list[Value]:
    """What a dotted name may mean.

    The place is the line and column where it is read; `None` is later, as in a function that is
    called.
    """
    key = (name, place)
    if scope.answers is None:
        scope.answers = {}
    known = scope.answers.get(key)
    if known is None:
        known = tuple(dict.fromkeys(_named(name, scope, place, _Budget())))
        scope.answers[key] = known
    return list(known)


def qualified_names(node: ast.expr, scope: Scope) -> list[str]:
    """The full names of the library objects an expression may be."""
    return [value.name for value in resolve(node, scope) if isinstance(value, Qualified)]


def _meaning(value: Expression, scope: Scope, place: Place | None, budget: _Budget) -> list[Value]:
    if isinstance(value, Imported):
        return [Qualified(canonical(value.qualified))]
    if isinstance(value, Name):
        return _named(value, scope, place, budget)
    if isinstance(value, Called):
        return [_result(callee) for callee in _named(value.callee, scope, place, budget)]
    if isinstance(value, Text):
        return [Literal(value.text, value.complete)]
    if isinstance(value, Joined):
        return _joined(value, scope, place, budget)
    if isinstance(value, Either):
        options = [m for option in value.options for m in _meaning(option, scope, place, budget)]
        return options[:MAX_VALUES]
    if isinstance(value, Defined):
        return [Local(value)]
    return [] if isinstance(value, Nothing) else [ANYTHING]


def _result(callee: Value) -> Value:
    if isinstance(callee, (Qualified, Member)):
        return Instance(callee.name)
    if isinstance(callee, Local):
        return LocalInstance(callee.definition)
    return ANYTHING


def _joined(value: Joined, scope: Scope, place: Place | None, budget: _Budget) -> list[Value]:
    """The known beginning of a composed string."""
    text = ""
    for part in value.parts:
        meanings = [m for m in _meaning(part, scope, place, budget) if isinstance(m, Literal)]
        if not meanings:
            return [Literal(text, False) if text else ANYTHING]
        text += meanings[0].text
        if not meanings[0].complete:
            return [Literal(text, False)]
    return [Literal(text, True)]


def _named(name: Name, scope: Scope, place: Place | None, budget: _Budget) -> list[Value]:
    budget.left -= 1
    if budget.left < 0:
        return [ANYTHING]
    owner = receiver_class(name, scope)
    if owner is not None:
        return _member(owner, name, scope, budget)
    found = lookup(name.root, scope, place)
    if found is None:
        return _starred(name, scope)
    return [
        _attribute(value, name.path, owner, budget)
        for binding, owner in found
        for value in _meaning(binding.value, owner, binding.place, budget)
    ][:MAX_VALUES]


def _starred(name: Name, scope: Scope) -> list[Value]:
    """A name nobody binds may come from any `from module import *`.

    One of Python's own, such as `float`, is hardly ever replaced by one.
    """
    modules = module_of(scope).stars()
    if name.root in _BUILTINS:
        modules = [each for each in modules if each.partition(".")[0] in _WITH_SUCH_NAMES]
    starred = [
        Qualified(canonical(".".join((member_of(module, name.root), *name.path))))
        for module in modules
    ]
    return [*starred] or [ANYTHING]


def _attribute(value: Value, path: tuple[str, ...], scope: Scope, budget: _Budget) -> Value:
    if not path:
        return value
    if isinstance(value, Qualified):
        return Qualified(canonical(".".join((value.name, *path))))
    if isinstance(value, Instance):
        return Member(".".join((value.name, *path)))
    if isinstance(value, (Local, LocalInstance)) and value.definition.is_class:
        member = dict(value.definition.members).get(path[0])
        if member is not None:
            meanings = _meaning(member, module_of(scope), None, budget)
            return _attribute(meanings[0], path[1:], scope, budget) if meanings else ANYTHING
    return ANYTHING


def _member(owner: ClassScope, name: Name, scope: Scope, budget: _Budget) -> list[Value]:
    """What `self.attribute` may be: assigned in the class body or, by any method, to `self`."""
    attribute, path = name.path[0], name.path[1:]
    members = owner.members.get(attribute) or _inherited(owner, attribute, budget)
    values = [
        _attribute(value, path, scope, budget)
        for member in members
        for value in _meaning(member, module_of(scope), None, budget)
    ]
    return values[:MAX_VALUES] or [ANYTHING]


def _inherited(owner: ClassScope, attribute: str, budget: _Budget) -> list[Expression]:
    """A class-level name of a base class that this file defines."""
    for base in class_definition(owner.node).bases:
        for value in _named(base, owner, (owner.node.lineno, owner.node.col_offset), budget):
            if isinstance(value, Local):
                found = [v for name, v in value.definition.members if name == attribute]
                if found:
                    return found
    return []


@lru_cache(maxsize=4096)
def canonical(qualified: str) -> str:
    """One spelling for modules that are reachable under two names."""
    for alias, name in _SAME_MODULE.items():
        if qualified == alias or qualified.startswith(alias + "."):
            return name + qualified[len(alias) :]
    return qualified
