"""Scopes: where names are looked up, and what they are bound to there."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from npulens.catalog.project_model import LibraryName
from npulens.syntax.bindings import (
    Binding,
    Bindings,
    Function,
    Place,
    annotated_value,
    bindings_of,
    class_definition,
    parameter_bindings,
    parameters_of,
    target_names,
)
from npulens.syntax.by_node import once_by_node
from npulens.syntax.other_modules import OtherModules, member_of
from npulens.syntax.values import (
    UNKNOWN,
    Called,
    Expression,
    Imported,
    Name,
    dotted_name,
    expression,
)
from npulens.syntax.walking import names_in

MAX_VALUES = 8
"""Of a name that may be more things, the rest is not looked at."""


class ScopedBinding(NamedTuple):
    """A binding, and the scope in which its value is to be read."""

    binding: Binding
    scope: Scope


class Scope:
    """A place where names are looked up: a module, a class, a function or a comprehension."""

    parent: Scope | None = None
    walrus_lines: Sequence[int] = ()
    """Lines of the text on which `:=` occurs; looking for it in a tree is costly."""

    answers: dict[Hashable, tuple[Any, ...]] | None = None
    """What names mean here, once that was found out, see `syntax/meanings.py`.

    It is kept here and not by the module: what refers to itself in a circle is freed late.
    """

    def bound(self, name: str, place: Place | None) -> list[ScopedBinding] | None:
        """What a name may be bound to in this very scope at a place (`None`: later)."""
        raise NotImplementedError

    def function_parent(self) -> Scope:
        """The scope that functions nested in this one see."""
        return self

    def around(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        current: Scope | None = self
        while current is not None:
            yield current
            current = current.parent


class ModuleNames:
    """The names of a module: which of its segments bind them, in order, and its star imports.

    `elsewhere` is what other modules of the project re-export of libraries.
    """

    def __init__(
        self, segments: Sequence[Bindings], elsewhere: OtherModules[LibraryName] | None = None
    ) -> None:
        self.names: dict[str, list[tuple[int, list[Binding]]]] = {}
        self.stars: list[str] = []
        for index, segment in enumerate(segments):
            self.stars += segment.stars
            for name, bindings in segment.names.items():
                self.names.setdefault(name, []).append((index, bindings))
        if elsewhere is not None and not elsewhere.is_empty:
            self._follow(elsewhere)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages that the module imports from."""
        found = (bindings for segments in self.names.values() for _, bindings in segments)
        return _packages(found)

    def _follow(self, elsewhere: OtherModules[LibraryName]) -> None:
        """Replace names of a module of the project by what they represent in a library."""
        for found in self.names.values():
            for at, (index, bindings) in enumerate(found):
                if any(isinstance(binding.value, Imported) for binding in bindings):
                    found[at] = index, [_followed(each, elsewhere) for each in bindings]
        for module in self.stars:
            for name in elsewhere.names_in(module):
                known = elsewhere.find(member_of(module, name))
                if known is not None and known.is_public and name not in self.names:
                    self.names[name] = [(0, [Binding(Imported(known.qualified), (0, 0))])]


def _followed(binding: Binding, elsewhere: OtherModules[LibraryName]) -> Binding:
    value = binding.value
    known = elsewhere.find(value.qualified) if isinstance(value, Imported) else None
    return binding if known is None else binding._replace(value=Imported(known.qualified))


class ModuleScope(Scope):
    """The module, seen from one of its segments."""

    def __init__(self, module: ModuleNames, current: int, walrus_lines: Sequence[int] = ()) -> None:
        self.module = module
        self.current = current
        self.walrus_lines = walrus_lines

    def bound(self, name: str, place: Place | None) -> list[ScopedBinding] | None:
        bound = self.module.names.get(name, [])
        end = len(bound)
        if place is not None:
            end = bisect_right(bound, self.current, key=lambda pair: pair[0])
        found: list[ScopedBinding] = []
        for index, bindings in reversed(bound[max(end - MAX_VALUES, 0) : end]):
            live, is_certain = _live(bindings, place if index == self.current else None)
            scope = self if index == self.current else ModuleScope(self.module, index)
            found += [ScopedBinding(binding, scope) for binding in live]
            if is_certain:
                break
        if not found and place is not None:
            return self.bound(name, None)
        return found or None

    def stars(self) -> list[str]:
        """Modules whose public names were imported with `*`."""
        return self.module.stars[:MAX_VALUES]


def _names_of(node: Function | ast.Lambda, walrus_lines: Sequence[int]) -> dict[str, list[Binding]]:
    """What a function binds; nobody changes that."""
    names = parameter_bindings(node.args)
    if not isinstance(node, ast.Lambda):
        bindings = bindings_of(node.body, walrus_lines)
        for name, found in bindings.names.items():
            if name not in bindings.outer:
                names[name] = names.get(name, []) + found
    return names


@once_by_node
def _names_without_walrus(node: Function | ast.Lambda) -> dict[str, list[Binding]]:
    return _names_of(node, ())


class FunctionScope(Scope):
    """A function or lambda; its own names are collected when first needed."""

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
            lines = self.walrus_lines
            self._names = _names_of(self.node, lines) if lines else _names_without_walrus(self.node)
        return self._names

    def bound(self, name: str, place: Place | None) -> list[ScopedBinding] | None:
        bindings = self.names.get(name)
        if not bindings:
            return None
        return [ScopedBinding(binding, self) for binding in _live(bindings, place)[0] or bindings]

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages that the function itself imports from."""
        return _packages(self.names.values())

    @property
    def receiver(self) -> str | None:
        """The name of `self` in a method."""
        arguments = self.node.args.posonlyargs or self.node.args.args
        return arguments[0].arg if self.owner is not None and arguments else None


class ClassScope(Scope):
    """A class body; its names are not seen by the functions in it."""

    parent: Scope

    def __init__(self, node: ast.ClassDef, parent: Scope) -> None:
        self.node = node
        self.parent = parent
        self.walrus_lines = parent.walrus_lines
        self._names: dict[str, list[Binding]] | None = None
        self._members: dict[str, list[Expression]] | None = None

    @property
    def members(self) -> dict[str, list[Expression]]:
        """Attributes of the class and of its instances, as far as its own text shows."""
        if self._members is None:
            self._members = {}
            for attribute, value in class_definition(self.node).members:
                self._members.setdefault(attribute, []).append(value)
            for method in self.node.body:
                if isinstance(method, Function):
                    for attribute, value in _assigned_members(method):
                        self._members.setdefault(attribute, []).append(value)
        return self._members

    def bound(self, name: str, place: Place | None) -> list[ScopedBinding] | None:
        if self._names is None:
            self._names = bindings_of(self.node.body, self.walrus_lines).names
        bindings = self._names.get(name, [])
        return [ScopedBinding(binding, self) for binding in _live(bindings, place)[0]] or None

    def function_parent(self) -> Scope:
        return self.parent


Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class ComprehensionScope(Scope):
    """A comprehension: only its targets are bound in it, to what is not known."""

    def __init__(self, targets: Iterable[str], parent: Scope) -> None:
        self.parent = parent
        self.walrus_lines = parent.walrus_lines
        self.names = frozenset(targets)

    def bound(self, name: str, place: Place | None) -> list[ScopedBinding] | None:
        return [ScopedBinding(Binding(UNKNOWN, (0, 0)), self)] if name in self.names else None


def _live(bindings: list[Binding], place: Place | None) -> tuple[list[Binding], bool]:
    """The bindings that may hold at a place: back from it, up to one that is always passed.

    Whether there is such a one, so that nothing before them can hold, comes with them.
    """
    live: list[Binding] = []
    end = len(bindings)
    if place is not None:
        end = bisect_left(bindings, place, key=lambda binding: binding.place)
    for index in range(end - 1, -1, -1):
        binding = bindings[index]
        live.append(binding)
        first, last = binding.block
        if first == (0, 0) or (place is not None and first <= place <= last):
            return live, True
        if len(live) >= MAX_VALUES:
            return live, True
    return live, False


def lookup(name: str, scope: Scope, place: Place | None) -> list[ScopedBinding] | None:
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
    owner = None if name is None else receiver_class(name, scope)
    return (
        owner is not None
        and name is not None
        and name.path[0] in owner.members
        and len(name.path) == 1
    )


def is_bound(name: str, scope: Scope) -> bool:
    """Whether any scope around binds a name."""
    return lookup(name, scope, None) is not None


def imports_any(packages: frozenset[str], scope: Scope) -> bool:
    """Whether the functions around, or their module, import one of some packages."""
    return any(
        (isinstance(each, FunctionScope) and not packages.isdisjoint(each.packages))
        or (isinstance(each, ModuleScope) and not packages.isdisjoint(each.module.packages))
        for each in scope.around()
    )


def _packages(names: Iterable[Iterable[Binding]]) -> frozenset[str]:
    """The packages that something is imported from."""
    return frozenset(
        each.value.qualified.partition(".")[0]
        for bindings in names
        for each in bindings
        if isinstance(each.value, Imported)
    )


def inner_scope(
    node: Function | ast.Lambda | ast.ClassDef, scope: Scope
) -> FunctionScope | ClassScope:
    """The scope of the body of a function or class that is defined in a scope."""
    if isinstance(node, ast.ClassDef):
        return ClassScope(node, scope.function_parent())
    owner = scope if isinstance(scope, ClassScope) and isinstance(node, Function) else None
    return FunctionScope(node, scope.function_parent(), owner)


def comprehension_scope(node: Comprehension, scope: Scope) -> ComprehensionScope:
    """The scope of a comprehension."""
    targets = (name for part in node.generators for name in target_names(part.target))
    return ComprehensionScope(targets, scope)


def function_of(scope: Scope) -> Function | None:
    """The function whose body a scope is; `None` of a lambda and of every other scope."""
    node = scope.node if isinstance(scope, FunctionScope) else None
    return node if isinstance(node, Function) else None


def definitions_around(scope: Scope) -> Iterator[Function | ast.Lambda | ast.ClassDef]:
    """The functions and classes that a scope is in, the innermost first."""
    current: Scope | None = scope
    while current is not None:
        if isinstance(current, (FunctionScope, ClassScope)):
            yield current.node
        current = getattr(current, "owner", None) or current.parent


def module_of(scope: Scope) -> ModuleScope:
    """The module a scope belongs to."""
    current: Scope = scope
    while current.parent is not None:
        current = current.parent
    assert isinstance(current, ModuleScope)
    return current


def receiver_class(name: Name, scope: Scope) -> ClassScope | None:
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


def _assigned_members(method: Function) -> list[tuple[str, Expression]]:
    """What a method assigns to attributes of its first parameter without using a local name."""
    parameters = parameter_bindings(method.args)
    receiver = next(iter(parameters), None)
    local = set(parameters)
    found: list[tuple[str, ast.expr]] = []
    pending: list[ast.stmt] = list(method.body)
    while pending:
        node = pending.pop()
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            for field in ("body", "orelse", "finalbody"):
                pending += getattr(node, field, ())
            for handler in getattr(node, "handlers", ()):
                pending += handler.body
        elif node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                local.update(target_names(target))
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == receiver
                ):
                    found.append((target.attr, node.value))
    annotated = {p.arg: annotated_value(p.annotation) for p, _ in parameters_of(method.args)}
    members: list[tuple[str, Expression]] = []
    for attribute, value in found:
        if isinstance(value, ast.Name) and value.id in annotated:
            members.append((attribute, annotated[value.id]))
        else:
            given = expression(value)
            # What a call returns does not depend on its arguments here.
            roots = {given.callee.root} if isinstance(given, Called) else {*names_in(value)}
            members.append((attribute, UNKNOWN if roots & local else given))
    return members
