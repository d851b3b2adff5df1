"""What functions may know of a class without looking into its methods.

Evaluations of functions are kept while other functions are edited. What they rest on is the
functions that were looked into, each as a node, and the interfaces of the requested classes.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from weakref import WeakKeyDictionary

from npulens.graphs.definitions import (
    ClassHere,
    FunctionHere,
    ModuleDefinitions,
    inner_statements,
    stored_by,
)
from npulens.syntax.by_node import once_by_node
from npulens.syntax.walking import inner_nodes

CONSTRUCTORS = ("__init__", "_init_layers", "__post_init__")
"""Methods that are read for what attributes hold."""
OF_MODULES = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "named_modules"}
    | {"train", "eval"}
)
"""Attributes that modules have and tensors lack, though others are of both."""
Interface = tuple[object, ...]
FUNCTION: Interface = ("function",)
"""That of each function: those that were looked into are known as nodes."""
_CLASSES: WeakKeyDictionary[ast.ClassDef, Interface] = WeakKeyDictionary()
_METHODS: WeakKeyDictionary[ast.AST, tuple[frozenset[str], Interface]] = WeakKeyDictionary()
"""What was found of methods, with the names of all methods of their class."""


class Interfaces:
    """The interfaces of the definitions of a module, which are read when a name is needed."""

    def __init__(self, definitions: ModuleDefinitions) -> None:
        self._definitions = definitions

    def of(self, name: str) -> Interface | None:
        """What a name of the module represents; `None` if it is no function or class."""
        definitions = self._definitions.all
        if name in definitions.functions:
            return FUNCTION
        owner = definitions.classes.get(name)
        if owner is None:
            return None
        known = _CLASSES.get(owner.node)
        if known is None:
            known = _CLASSES[owner.node] = tuple(_of_class(owner))
        return known

    def behind(self, functions: Iterable[FunctionHere]) -> dict[str, Interface | None]:
        """Those of their classes, and of all that was looked up while they were evaluated."""
        owners = {each.owner.node.name for each in functions if each.owner is not None}
        return {name: self.of(name) for name in self._definitions.all.queried | owners}

    def are(self, before: Mapping[str, Interface | None]) -> bool:
        """Whether names mean what they meant; nodes are compared by identity."""
        return all(self.of(name) == interface for name, interface in before.items())


def _of_class(owner: ClassHere) -> Iterator[object]:
    """Its head, its attributes, its constructors as they are, and what other methods show."""
    node = owner.node
    yield from (ast.dump(part) for part in (*node.decorator_list, *node.bases, *node.keywords))
    names = frozenset(owner.methods)
    yield names
    methods: dict[ast.stmt, FunctionHere] = {each.node: each for each in owner.methods.values()}
    for statement in node.body:
        method = methods.get(statement)
        if method is None:
            yield ast.dump(statement)
        elif method.node.name in CONSTRUCTORS:
            yield statement
        else:
            yield _of_method(method, names)


def _of_method(method: FunctionHere, names: frozenset[str]) -> Interface:
    """Its head, what it assigns to attributes of `self`, and how it uses other methods."""
    node = method.node
    known = _METHODS.get(node)
    if known is None or known[0] != names:
        head = [ast.dump(part) for part in (node.args, *node.decorator_list)]
        stores = [
            ast.dump(statement)
            for statement in inner_statements(node.body)
            if any(stored_by(statement, method.receiver))
        ]
        known = names, (node.name, *head, "stores", *stores, "uses", *_uses(node, names))
        _METHODS[node] = known
    return known[1]


@once_by_node
def modules_of(node: ast.ClassDef) -> frozenset[str]:
    """The attributes that some method of a class shows to be modules: `self.net.parameters()`."""
    shown = {
        part.value.attr
        for method in node.body
        for part in inner_nodes(method)
        if isinstance(part, ast.Attribute)
        and part.attr in OF_MODULES
        and isinstance(part.value, ast.Attribute)
    }
    return frozenset(shown)


def _uses(node: ast.AST, names: frozenset[str]) -> Iterator[str]:
    """Calls of methods, methods that are passed on, and what shows modules."""
    for part in inner_nodes(node):
        called = part.func if isinstance(part, ast.Call) else part
        if isinstance(part, ast.Attribute) and part.attr in OF_MODULES:
            yield ast.dump(part)
        if isinstance(called, ast.Attribute) and called.attr in names:
            yield ast.dump(part)
