"""The functions and classes of a file, as far as calls of them can be looked into."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from weakref import ref

from npulens.syntax.bindings import Function
from npulens.syntax.by_node import once_by_node
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import ClassScope, FunctionScope, ModuleNames, ModuleScope, Scope
from npulens.syntax.values import is_none
from npulens.syntax.walking import inner_nodes

_Simple = (
    ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return | Function | ast.ClassDef
)
MAX_BASES = 8
"""Of a longer chain of base classes the rest is not looked at."""


class FunctionHere:
    """A function of this file and the scope of its body, or of another module.

    `place` says of which one, it is empty for this file. It is known by its class and refers to
    it weakly: what refers to itself in a circle is freed late. Classes live as long as the
    definitions.
    """

    __slots__ = ("_owner", "node", "place", "scope")

    def __init__(
        self,
        node: Function,
        scope: FunctionScope,
        owner: ClassHere | None = None,
        place: str = "",
    ) -> None:
        self.node = node
        self.scope = scope
        self.place = place
        self._owner = None if owner is None else ref(owner)

    @property
    def owner(self) -> ClassHere | None:
        """The class whose method it is."""
        return None if self._owner is None else self._owner()

    @property
    def receiver(self) -> str | None:
        """The name of `self`, if it is a method that has one."""
        if self._owner is None or (self.node.decorator_list and "staticmethod" in self.decorators):
            return None
        return self.positional[0].arg if self.positional else None

    @property
    def scopes(self) -> Iterator[FunctionScope]:
        """Its own and those of the functions around it, the innermost first."""
        scope: Scope | None = self.scope
        while scope is not None:
            if isinstance(scope, FunctionScope):
                yield scope
            scope = scope.parent

    @property
    def positional(self) -> list[ast.arg]:
        """The parameters that can be given by place, `self` among them."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    @property
    def parameters(self) -> list[ast.arg]:
        """All parameters but those for the rest."""
        return [*self.positional, *self.node.args.kwonlyargs]

    @property
    def decorators(self) -> frozenset[str]:
        """The full names of its decorators, as written where they are not known."""
        names: set[str] = set()
        outside = self.scope.parent
        for decorator in self.node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            known = qualified_names(called, outside) if outside is not None else []
            names.update(known or [ast.unparse(called)])
        return frozenset(names)


class ClassHere:
    """A class of this file, or of the module that `place` says, with its methods by name."""

    def __init__(self, node: ast.ClassDef, scope: ClassScope, place: str = "") -> None:
        self.node = node
        self.scope = scope
        self.place = place
        self.methods: dict[str, FunctionHere] = {}

    @property
    def base_names(self) -> Iterator[str]:
        """Bases that are plain names."""
        return (base.id for base in self.node.bases if isinstance(base, ast.Name))


class Definitions:
    """What a file defines at its top level, filled segment by segment.

    `queried` collects the names of functions and classes that were looked up, so that a result can
    be kept as long as these stay as they are. `place` is empty for the analysed file, else it says
    which module they are of.
    """

    def __init__(self, place: str = "") -> None:
        self.place = place
        self.functions: dict[str, FunctionHere] = {}
        self.classes: dict[str, ClassHere] = {}
        self.queried: set[str] = set()

    @contextmanager
    def looked_up(self) -> Iterator[set[str]]:
        """The names that are looked up within; they count as looked up around it, too."""
        around, self.queried = self.queried, set()
        try:
            yield self.queried
        finally:
            around |= self.queried
            self.queried = around

    def add(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        """The definitions of one segment of the file, also those under a plain `if` or `try`."""
        for node in body:
            if isinstance(node, Function):
                self._add_function(node.name, node, scope)
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = class_here(node, scope, self.place)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._add_function(target.id, _as_function(node.value), scope)
            elif isinstance(node, (ast.If, ast.Try)):
                self.add(node.body, scope)

    def _add_function(self, name: str, node: Function, scope: Scope) -> None:
        function = FunctionHere(node, FunctionScope(node, scope), None, self.place)
        self.functions[name] = function

    def function(self, name: str) -> FunctionHere | None:
        """The function of this name at module level."""
        self.queried.add(name)
        return self.functions.get(name)

    def lineage(self, owner: ClassHere) -> Iterator[ClassHere]:
        """A class and its bases in this file, nearest first."""
        pending, seen = [owner], 0
        while pending and seen < MAX_BASES:
            current = pending.pop(0)
            seen += 1
            yield current
            for name in current.base_names:
                self.queried.add(name)
                base = self.classes.get(name)
                if base is not None:
                    pending.append(base)

    def method(self, owner: ClassHere, name: str) -> FunctionHere | None:
        """A method of a class or of one of its bases in this file."""
        return next((c.methods[name] for c in self.lineage(owner) if name in c.methods), None)


class ModuleDefinitions:
    """The definitions of a module in segments, for all who evaluate its functions."""

    def __init__(self, bodies: Sequence[Sequence[ast.stmt]], names: ModuleNames) -> None:
        self._bodies = bodies
        self._names = names

    @cached_property
    def scopes(self) -> list[ModuleScope]:
        """The scopes of the segments."""
        return [ModuleScope(self._names, index) for index in range(len(self._bodies))]

    @cached_property
    def all(self) -> Definitions:
        """What the segments define."""
        definitions = Definitions()
        for body, scope in zip(self._bodies, self.scopes, strict=True):
            definitions.add(body, scope)
        return definitions


def inner_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of the blocks in it, not those of nested definitions."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _Simple):
            continue
        for field_name in ("body", "orelse", "finalbody"):
            pending += getattr(node, field_name, ())
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            pending += part.body


def is_generator(function: FunctionHere) -> bool:
    """Whether a function yields."""
    return _yields(function.node)


@once_by_node
def _yields(node: Function) -> bool:
    return any(
        isinstance(getattr(each, "value", None), (ast.Yield, ast.YieldFrom))
        for each in inner_statements(node.body)
    )


def is_plain(owner: ClassHere) -> bool:
    """Whether a class holds nothing that is made: its instances only remember what they get."""
    return _is_plain(owner.node)


@once_by_node
def _is_plain(node: ast.ClassDef) -> bool:
    constructor = next((f for f in node.body if getattr(f, "name", "") == "__init__"), None)
    calls = (c for c in inner_nodes(constructor) if isinstance(c, ast.Call)) if constructor else ()
    return all(ast.unparse(c.func) in ("super", "super().__init__") for c in calls)


def stored_attributes(method: FunctionHere) -> set[str]:
    """Attributes of `self` that a method assigns."""
    return {
        name
        for node in inner_statements(method.node.body)
        for name in stored_by(node, method.receiver)
    }


def stored_by(node: ast.stmt, receiver: str | None) -> Iterator[str]:
    """Attributes of `self` that one statement assigns; `receiver` is the name of `self` there."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [node.target]
    for target in targets:
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            match part:
                case ast.Attribute(ast.Name(name), attribute) if name == receiver:
                    yield attribute


@once_by_node
def attributes_without_value(constructor: Function) -> frozenset[str]:
    """Attributes of an instance that a constructor sets to `None`, in some case or always."""
    found: set[str] = set()
    for node in inner_nodes(constructor):
        match node:
            case ast.Assign(targets, value) if any(map(is_none, _arms(value))):
                found.update(t.attr for t in targets if isinstance(t, ast.Attribute))
            case ast.Call(
                ast.Attribute(attr="register_parameter" | "register_buffer"),
                [ast.Constant(str(name)), ast.Constant(None), *_],
            ):
                found.add(name)
    return frozenset(found)


def _arms(value: ast.expr) -> list[ast.expr]:
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def nested_function(node: Function, outer: FunctionHere) -> FunctionHere:
    """A function defined inside another; what it reads of that one is not known."""
    return FunctionHere(node, FunctionScope(node, outer.scope), None, outer.place)


def sibling_function(function: FunctionHere, name: str) -> FunctionHere | None:
    """What a name means in a function, where it is another one that is defined beside it.

    It is `None` where the functions around bind the name more than once, or to something else.
    """
    scope = function.scope.parent
    while isinstance(scope, FunctionScope):
        bindings = scope.names.get(name)
        if bindings:
            index = _defined_in(scope.node).get(name) if len(bindings) == 1 else None
            if index is None or isinstance(scope.node, ast.Lambda):
                return None
            node = scope.node.body[index]
            assert isinstance(node, Function)
            return FunctionHere(node, FunctionScope(node, scope), None, function.place)
        scope = scope.parent
    return None


@once_by_node
def _defined_in(node: Function | ast.Lambda) -> Mapping[str, int]:
    """Where in the body of a function others are defined, by their names."""
    if isinstance(node, ast.Lambda):
        return {}
    return {each.name: i for i, each in enumerate(node.body) if isinstance(each, Function)}


def lambda_function(node: ast.Lambda, outer: FunctionHere) -> FunctionHere:
    """A lambda as the function that it is."""
    return nested_function(_as_function(node), outer)


@once_by_node
def _as_function(node: ast.Lambda) -> ast.FunctionDef:
    returned = ast.copy_location(ast.Return(node.body), node)
    function = ast.FunctionDef("<lambda>", node.args, [returned], [])
    return ast.copy_location(function, node)


@once_by_node
def each_as_call(node: ast.ListComp | ast.GeneratorExp) -> ast.Call | None:
    """A comprehension as a lambda that is called with the things it goes over, one by one."""
    match node.generators:
        case [ast.comprehension(ast.Name(name), things, [], 0)]:
            arguments = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
            function = ast.copy_location(ast.Lambda(arguments, node.elt), node.elt)
            return ast.copy_location(ast.Call(function, [things], []), node.elt)
    return None


def class_here(node: ast.ClassDef, scope: Scope, place: str = "") -> ClassHere:
    """A class with its methods."""
    inner = ClassScope(node, scope)
    found = ClassHere(node, inner, place)
    for method in node.body:
        if isinstance(method, Function):
            body = FunctionScope(method, scope, inner)
            found.methods[method.name] = FunctionHere(method, body, found, place)
    return found
