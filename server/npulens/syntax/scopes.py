"""Scopes and what names mean in them."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from npulens.syntax.bindings import (
    Binding,
    Bindings,
    Function,
    Place,
    annotated_value,
    bindings_of,
    class_definition,
    parameter_bindings,
    target_names,
)
from npulens.syntax.values import (
    UNKNOWN,
    Called,
    Defined,
    Either,
    Expression,
    Imported,
    Joined,
    Name,
    Nothing,
    Text,
    dotted_name,
    expression,
)

_MAX_STEPS = 64
"""How many names are looked up to answer one question; names may be bound to each other."""
_MAX_VALUES = 8

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
    """What a call of a library's class or function returned."""

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


class Held(NamedTuple):
    """A binding, and the scope in which its value is to be read."""

    binding: Binding
    scope: Scope


class Scope:
    """A place where names are looked up: a module, a class, a function or a comprehension."""

    parent: Scope | None = None
    walrus_lines: Sequence[int] = ()
    """Lines of the text on which `:=` occurs; looking for it in a tree is costly."""

    def bound(self, name: str, place: Place | None) -> list[Held] | None:
        """What a name may be bound to in this very scope at a place (`None`: later)."""
        raise NotImplementedError

    def function_parent(self) -> Scope | None:
        """The scope that functions nested in this one see."""
        return self


class ModuleNames:
    """The names of a module: which of its pieces bind them, in order, and its star imports."""

    def __init__(self, pieces: Sequence[Bindings]) -> None:
        self.names: dict[str, list[tuple[int, list[Binding]]]] = {}
        self.stars: list[str] = []
        for index, piece in enumerate(pieces):
            self.stars += piece.stars
            for name, bindings in piece.names.items():
                self.names.setdefault(name, []).append((index, bindings))


class ModuleScope(Scope):
    """The module, seen from one of its pieces."""

    def __init__(self, module: ModuleNames, current: int, walrus_lines: Sequence[int] = ()) -> None:
        self.module = module
        self.current = current
        self.walrus_lines = walrus_lines

    def bound(self, name: str, place: Place | None) -> list[Held] | None:
        bound = self.module.names.get(name, [])
        end = len(bound)
        if place is not None:
            end = bisect_right(bound, self.current, key=lambda pair: pair[0])
        found: list[Held] = []
        for index, bindings in reversed(bound[max(end - _MAX_VALUES, 0) : end]):
            live = _live(bindings, place if index == self.current else None)
            scope = self if index == self.current else ModuleScope(self.module, index)
            found += [Held(binding, scope) for binding in live]
            if live and _is_certain(live):
                break
        if not found and place is not None:
            return self.bound(name, None)
        return found or None

    def stars(self) -> list[str]:
        """Modules whose public names were imported with `*`."""
        return self.module.stars[:_MAX_VALUES]


class FunctionScope(Scope):
    """A function or lambda; its own names are collected when first asked for."""

    def __init__(
        self, node: Function | ast.Lambda, parent: Scope, owner: ClassScope | None = None
    ) -> None:
        self.node = node
        self.parent = parent
        self.walrus_lines = parent.walrus_lines
        self.owner = owner
        self._names: dict[str, list[Binding]] | None = None

    @property
    def names(self) -> dict[str, list[Binding]]:
        if self._names is None:
            self._names = parameter_bindings(self.node.args)
            if not isinstance(self.node, ast.Lambda):
                bindings = bindings_of(self.node.body, self.walrus_lines)
                for name, found in bindings.names.items():
                    if name not in bindings.outer:
                        self._names[name] = self._names.get(name, []) + found
        return self._names

    def bound(self, name: str, place: Place | None) -> list[Held] | None:
        bindings = self.names.get(name)
        if not bindings:
            return None
        return [Held(binding, self) for binding in _live(bindings, place) or bindings]

    @property
    def receiver(self) -> str | None:
        """The name of `self` in a method."""
        arguments = self.node.args.posonlyargs or self.node.args.args
        return arguments[0].arg if self.owner is not None and arguments else None


class ClassScope(Scope):
    """A class body; its names are not seen by the functions in it."""

    def __init__(self, node: ast.ClassDef, parent: Scope) -> None:
        self.node = node
        self.parent = parent
        self.walrus_lines = parent.walrus_lines
        self._names: dict[str, list[Binding]] | None = None
        self._members: dict[str, list[Expression]] | None = None

    @property
    def members(self) -> dict[str, list[Expression]]:
        """Attributes of the class and of its instances, as far as its own text tells."""
        if self._members is None:
            self._members = {}
            for attribute, value in class_definition(self.node).members:
                self._members.setdefault(attribute, []).append(value)
            for method in self.node.body:
                if isinstance(method, Function):
                    for attribute, value in _assigned_members(method):
                        self._members.setdefault(attribute, []).append(value)
        return self._members

    def bound(self, name: str, place: Place | None) -> list[Held] | None:
        if self._names is None:
            self._names = bindings_of(self.node.body, self.walrus_lines).names
        bindings = self._names.get(name, [])
        return [Held(binding, self) for binding in _live(bindings, place)] or None

    def function_parent(self) -> Scope | None:
        return self.parent


class ComprehensionScope(Scope):
    """A comprehension: only its targets are bound in it, to what is not known."""

    def __init__(self, targets: Iterable[str], parent: Scope) -> None:
        self.parent = parent
        self.walrus_lines = parent.walrus_lines
        self.names = frozenset(targets)

    def bound(self, name: str, place: Place | None) -> list[Held] | None:
        return [Held(Binding(UNKNOWN, (0, 0)), self)] if name in self.names else None

    def function_parent(self) -> Scope | None:
        return self


def _live(bindings: list[Binding], place: Place | None) -> list[Binding]:
    """The bindings that may hold at a place: back from it, up to one that is always passed."""
    live: list[Binding] = []
    end = len(bindings)
    if place is not None:
        end = bisect_left(bindings, place, key=lambda binding: binding.place)
    for index in range(end - 1, -1, -1):
        binding = bindings[index]
        live.append(binding)
        first, last = binding.block
        if first == (0, 0) or (place is not None and first <= place <= last):
            break
        if len(live) >= _MAX_VALUES:
            break
    return live


def _is_certain(live: list[Binding]) -> bool:
    """Whether the earliest live binding is always passed, so nothing before it can hold."""
    return live[-1].block[0] == (0, 0) or len(live) >= _MAX_VALUES


def resolve(node: ast.expr, scope: Scope) -> list[Value]:
    """What an expression may stand for where it is written, likeliest first."""
    place = (node.lineno, node.col_offset)
    return list(dict.fromkeys(_meaning(expression(node), scope, place, _Budget())))


def resolve_name(name: Name, scope: Scope, place: Place | None) -> list[Value]:
    """What a dotted name may stand for."""
    return list(dict.fromkeys(_named(name, scope, place, _Budget())))


def qualified_names(node: ast.expr, scope: Scope) -> list[str]:
    """The full names of the library objects an expression may be."""
    name = dotted_name(node)
    values = (
        resolve(node, scope)
        if name is None
        else resolve_name(name, scope, (node.lineno, node.col_offset))
    )
    return [value.name for value in values if isinstance(value, Qualified)]


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
        return options[:_MAX_VALUES]
    if isinstance(value, Defined):
        return [Local(value)]
    return [] if isinstance(value, Nothing) else [ANYTHING]


def _result(callee: Value) -> Value:
    if isinstance(callee, Qualified):
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
    owner = _receiver_class(name, scope)
    if owner is not None:
        return _member(owner, name, scope, budget)
    found = _lookup(name.root, scope, place)
    if found is None:
        return _starred(name, scope)
    return [
        _attribute(value, name.path, holder, budget)
        for binding, holder in found
        for value in _meaning(binding.value, holder, binding.place, budget)
    ][:_MAX_VALUES]


def _lookup(name: str, scope: Scope, place: Place | None) -> list[Held] | None:
    """What a name is bound to in the innermost scope that binds it, `None` if none does."""
    current: Scope | None = scope
    while current is not None:
        found = current.bound(name, place)
        if found is not None:
            return found
        if isinstance(current, FunctionScope):
            place = None
        current = current.parent
    return None


def is_own_attribute(node: ast.Attribute, scope: Scope) -> bool:
    """Whether an attribute of `self` is one that the text of its class defines."""
    name = dotted_name(node)
    owner = None if name is None else _receiver_class(name, scope)
    return (
        owner is not None
        and name is not None
        and name.path[0] in owner.members
        and len(name.path) == 1
    )


def is_bound(name: str, scope: Scope) -> bool:
    """Whether any scope around binds a name."""
    return _lookup(name, scope, None) is not None


def module_of(scope: Scope) -> ModuleScope:
    """The module a scope belongs to."""
    current: Scope = scope
    while current.parent is not None:
        current = current.parent
    assert isinstance(current, ModuleScope)
    return current


def _starred(name: Name, scope: Scope) -> list[Value]:
    """A name nobody binds may come from any `from module import *`."""
    starred = [
        Qualified(canonical(".".join((module, name.root, *name.path))))
        for module in module_of(scope).stars()
    ]
    return [*starred] or [ANYTHING]


def _attribute(value: Value, path: tuple[str, ...], scope: Scope, budget: _Budget) -> Value:
    if not path:
        return value
    if isinstance(value, Qualified):
        return Qualified(canonical(".".join((value.name, *path))))
    if isinstance(value, Instance):
        return Member(".".join((value.name, *path)))
    if isinstance(value, Local | LocalInstance) and value.definition.is_class:
        member = dict(value.definition.members).get(path[0])
        if member is not None:
            meanings = _meaning(member, module_of(scope), None, budget)
            return _attribute(meanings[0], path[1:], scope, budget) if meanings else ANYTHING
    return ANYTHING


def _receiver_class(name: Name, scope: Scope) -> ClassScope | None:
    """The class whose instance `self` is, if the name is an attribute of it."""
    current: Scope | None = scope
    while current is not None and name.path:
        if isinstance(current, FunctionScope):
            if current.receiver == name.root:
                return current.owner
            if name.root in current.names:
                return None
        current = current.parent
    return None


def _member(owner: ClassScope, name: Name, scope: Scope, budget: _Budget) -> list[Value]:
    """What `self.attribute` may be: assigned in the class body or, by any method, to `self`."""
    attribute, path = name.path[0], name.path[1:]
    members = owner.members.get(attribute) or _inherited(owner, attribute, budget)
    values = [
        _attribute(value, path, scope, budget)
        for member in members
        for value in _meaning(member, module_of(scope), None, budget)
    ]
    return values[:_MAX_VALUES] or [ANYTHING]


def _inherited(owner: ClassScope, attribute: str, budget: _Budget) -> list[Expression]:
    """A class-level name of a base class that this file defines."""
    for base in class_definition(owner.node).bases:
        for value in _named(base, owner, (owner.node.lineno, owner.node.col_offset), budget):
            if isinstance(value, Local):
                found = [v for name, v in value.definition.members if name == attribute]
                if found:
                    return found
    return []


def _assigned_members(method: Function) -> list[tuple[str, Expression]]:
    """What a method assigns to attributes of its first parameter without using a local name."""
    parameters = parameter_bindings(method.args)
    receiver = next(iter(parameters), None)
    local = set(parameters)
    found: list[tuple[str, ast.expr]] = []
    pending: list[ast.stmt] = list(method.body)
    while pending:
        node = pending.pop()
        for field in ("body", "orelse", "finalbody"):
            pending += getattr(node, field, ())
        for handler in getattr(node, "handlers", ()):
            pending += handler.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                local.update(target_names(target))
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == receiver
                ):
                    found.append((target.attr, node.value))
    annotated = {
        argument.arg: annotated_value(argument.annotation)
        for argument in [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs]
    }
    members: list[tuple[str, Expression]] = []
    for attribute, value in found:
        if isinstance(value, ast.Name) and value.id in annotated:
            members.append((attribute, annotated[value.id]))
        else:
            members.append((attribute, UNKNOWN if _roots(value) & local else expression(value)))
    return members


def _roots(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def canonical(qualified: str) -> str:
    """One spelling for modules that are reachable under two names."""
    for alias, name in _SAME_MODULE.items():
        if qualified == alias or qualified.startswith(alias + "."):
            return name + qualified[len(alias) :]
    return qualified
