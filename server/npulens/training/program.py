"""The files of a program: the script that is started, and the modules of its project it imports."""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import (
    Instance,
    Local,
    LocalInstance,
    Qualified,
    Value,
    resolve,
    resolve_name,
)
from npulens.syntax.scopes import ModuleScope, Scope, module_of
from npulens.syntax.values import Name
from npulens.syntax.walking import is_main_guard, nodes_below
from npulens.training.node_places import Place, placed_nodes

_MOST_MODULES = 120
_MOST_STEPS = 40

Definition = Function | ast.ClassDef


class Module(NamedTuple):
    """A file of a program.

    Attributes:
        name: Its full name, as the imports of the program have it.
        is_package: It is the `__init__` of a package.
    """

    name: str
    tree: ast.Module
    scope: ModuleScope
    is_package: bool = False


FindModule = Callable[[str], Module | None]
"""From a full name to the module of the project; the same module each time, `None` of others."""


class Program:
    """A script with the modules that it imports, and what their names lead to.

    Attributes:
        start: The script.
        modules: All of them, the script first.
    """

    def __init__(self, start: Module, find: FindModule = lambda _: None) -> None:
        self.start = start
        self._find = find
        self.modules: tuple[Module, ...] = tuple(_imported(start, self.module))
        self._by_names = {id(each.scope.module): each for each in self.modules}
        self._top = {each.tree: _defined(each.tree) for each in self.modules}
        self._families: dict[ast.ClassDef, ast.ClassDef] = {}

    @classmethod
    def of_one(cls, tree: ast.Module, scope: ModuleScope) -> "Program":
        """A script whose other modules nobody looks at."""
        return cls(Module("", tree, scope))

    def module(self, name: str) -> Module | None:
        """The module of a full name."""
        return self.start if name and name == self.start.name else self._find(name)

    def module_at(self, scope: Scope) -> Module:
        """The module that a scope belongs to."""
        return self._by_names[id(module_of(scope).module)]

    @cached_property
    def module_with(self) -> dict[ast.AST, Module]:
        """The modules of all nodes."""
        return {node: each for each in self.modules for node in nodes_below(each.tree)}

    def body_of(self, module: Module) -> Sequence[ast.stmt]:
        """What a module runs: when it is imported, nothing behind its main guard."""
        body = module.tree.body
        return body if module is self.start else [s for s in body if not is_main_guard(s)]

    @cached_property
    def placed(self) -> tuple[tuple[ast.AST, Place], ...]:
        """All nodes of what its modules run, with their places."""
        return tuple(
            pair for each in self.modules for pair in placed_nodes(self.body_of(each), each.scope)
        )

    def meant(self, node: ast.expr, scope: Scope) -> Iterator[Definition]:
        """The functions and classes of the program that an expression names."""
        for value in resolve(node, scope):
            yield from self._defined_by(value, scope, instance=False)

    def instances(self, node: ast.expr, scope: Scope) -> Iterator[ast.ClassDef]:
        """The classes of the program of which an expression is an object, as its names show."""
        for value in resolve(node, scope):
            for each in self._defined_by(value, scope, instance=True):
                if isinstance(each, ast.ClassDef):
                    yield each

    def _defined_by(self, value: Value, scope: Scope, *, instance: bool) -> Iterator[Definition]:
        module = self.module_at(scope)
        found: Definition | None = None
        if isinstance(value, LocalInstance if instance else Local):
            found = self._top[module.tree].get(value.definition.name)
        elif isinstance(value, Instance if instance else Qualified):
            found = self.definition(value.name, module)
        if found is not None:
            yield found

    def definition(self, name: str, at: Module) -> Definition | None:
        """The function or class of a name, as a module of the program has it."""
        pending, known = [(name, at)], set[str]()
        while pending and len(known) < _MOST_STEPS:
            module, path = self._module_of(*pending.pop())
            if module is None or not path or len(path) > 2 or module.tree not in self._top:
                continue
            found = self._top[module.tree].get(path[0])
            if isinstance(found, ast.ClassDef) and len(path) == 2:
                return self.method(found, path[1])
            if found is not None:
                return found if len(path) == 1 else None
            passed = resolve_name(Name(path[0]), module.scope, None) if len(path) == 1 else []
            names = [v.name for v in passed if isinstance(v, Qualified)]
            pending += [(each, module) for each in reversed(names) if each not in known]
            known.update(names)
        return None

    def variable(self, name: str, at: Module) -> tuple[ast.Module, str] | None:
        """The module whose variable a full name is, and what it is called there."""
        module, path = self._module_of(name, at)
        if module is None or len(path) != 1 or module.tree not in self._top:
            return None
        return module.tree, path[0]

    def _module_of(self, name: str, at: Module) -> tuple[Module | None, list[str]]:
        """The module with what a full name means, and the rest of the name.

        A package may have a function of the name of the module that it takes it from.
        """
        parts = absolute_name(name, at).split(".")
        for end in range(len(parts) - 1, 0, -1):
            found = self.module(".".join(parts[:end]))
            if found is not None:
                return found, parts[end:]
        return None, parts

    def bases(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """A class and those that it is derived from, as far as the program has them."""
        found: dict[ast.ClassDef, None] = {}
        pending = [owner]
        while pending:
            each = pending.pop()
            if each in found:
                continue
            found[each] = None
            scope = self.module_with[each].scope
            for base in reversed(each.bases):
                pending += [c for c in self.meant(base, scope) if isinstance(c, ast.ClassDef)]
        return list(found)

    def family(self, owner: ast.ClassDef) -> ast.ClassDef:
        """The class at the root of those that share the attributes of their objects."""
        if owner not in self._families:
            self._families[owner] = owner  # of classes that are derived from each other
            base = next((c for c in self.bases(owner)[1:] if c is not owner), owner)
            self._families[owner] = owner if base is owner else self.family(base)
        return self._families[owner]

    def method(self, owner: ast.ClassDef, name: str) -> Function | None:
        """The method of a class or of those that it is derived from."""
        for each in self.bases(owner):
            for node in each.body:
                if isinstance(node, Function) and node.name == name:
                    return node
        return None

    @cached_property
    def derived(self) -> dict[ast.ClassDef, list[ast.ClassDef]]:
        """The classes that are derived from a class."""
        found: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        for module in self.modules:
            for node in self._top[module.tree].values():
                if isinstance(node, ast.ClassDef):
                    for base in self.bases(node)[1:]:
                        found.setdefault(base, []).append(node)
        return found


def absolute_name(name: str, at: Module) -> str:
    """A name without the dots of a relative import."""
    inner = name.lstrip(".")
    ups = len(name) - len(inner)
    if not ups:
        return name
    package = at.name.split(".") if at.name else []
    package = package[: len(package) - ups + at.is_package]
    return ".".join((*package, *([inner] if inner else [])))


def _imported(start: Module, find: FindModule) -> Iterator[Module]:
    """A module and all that it imports, directly or not."""
    known: set[ast.Module] = set()
    pending = [start]
    while pending and len(known) < _MOST_MODULES:
        module = pending.pop(0)
        if module.tree in known:
            continue
        known.add(module.tree)
        yield module
        for name in _names_of_modules(module):
            parts = name.split(".")
            found = (find(".".join(parts[:end])) for end in range(1, len(parts) + 1))
            pending += [each for each in found if each is not None]


def _names_of_modules(module: Module) -> Iterator[str]:
    """The names in the imports of a module, which may be modules."""
    for node in nodes_below(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = absolute_name("." * node.level + (node.module or ""), module)
            if package:
                yield package
            yield from (".".join(filter(None, (package, a.name))) for a in node.names)


def _defined(tree: ast.Module) -> dict[str, Definition]:
    """The functions and classes of a module by their names, those at its top first."""
    found: dict[str, Definition] = {}
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (Function, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending += ast.iter_child_nodes(node)
    for node in nodes_below(tree):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, node)
    return found


FindPrograms = Callable[[Module], Sequence[Program]]
"""From the module of a script to the programs of its project that import it."""
