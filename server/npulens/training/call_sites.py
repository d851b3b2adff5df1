"""Which calls of a file run which of its functions, and in which loops they stand."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Local, LocalInstance, resolve
from npulens.syntax.scopes import Scope, definitions_around
from npulens.syntax.walking import children
from npulens.training.node_places import Loop, placed_nodes

__all__ = ["CallSites", "Loop", "Path", "Site"]
_MAX_DEPTH = 12
_MAX_PATHS = 64
_OF_EVERY_OBJECT = frozenset(
    {"train", "eval", "step", "forward", "backward", "to", "cuda", "save", "load", "update", "run"}
    | {"reset", "get", "add", "append", "close", "zero_grad", "parameters", "state_dict", "log"}
)
"""Methods so common that an unknown receiver says nothing."""


class Site(NamedTuple):
    """A call, or a name that is handed to another function, and what it stands in.

    Attributes:
        scope: Where its names are looked up.
        function: The innermost definition around it; `None` at the top of the module.
        loops: The loops of that function around it, the outermost first.
        statements: The statements of that function around it, the outermost first; the last one
            holds the node.
    """

    node: ast.expr
    scope: Scope
    function: Function | None
    loops: tuple[Loop, ...]
    statements: tuple[ast.stmt, ...]

    @property
    def statement(self) -> ast.stmt:
        return self.statements[-1]


class Path(NamedTuple):
    """A way from where a file starts to a call: the sites on it, the called one last."""

    sites: tuple[Site, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All loops around the call on this way, the outermost first."""
        return tuple(loop for site in self.sites for loop in site.loops)

    @property
    def start(self) -> Function | None:
        """The function that it starts in, which nothing of the file calls; `None` if the module."""
        return self.sites[0].function


class CallSites:
    """All calls of a module, and which of its functions they run."""

    def __init__(self, tree: ast.Module, module: Scope) -> None:
        self.all = tuple(_sites(tree.body, module))
        self._functions, self._methods = _definitions(tree)
        self._callers: dict[Function, list[Site]] = defaultdict(list)
        for site in self.all:
            for function in self.run_by(site):
                self._callers[function].append(site)

    def calls(self) -> Iterator[tuple[Site, ast.Call]]:
        """The sites that are calls."""
        for site in self.all:
            if isinstance(site.node, ast.Call):
                yield site, site.node

    def callers(self, function: Function) -> Sequence[Site]:
        """The sites that run a function."""
        return self._callers.get(function, ())

    def paths_to(self, site: Site) -> list[Path]:
        """The ways to a site, from the module or from functions that nothing of the file calls."""
        found: list[Path] = []
        pending: list[tuple[Site, ...]] = [(site,)]
        while pending and len(found) < _MAX_PATHS:
            way = pending.pop()
            function = way[0].function
            above = [] if function is None else self._callers.get(function, [])
            above = [s for s in above if all(s.function is not w.function for w in way)]
            if not above or len(way) >= _MAX_DEPTH:
                found.append(Path(way))
            pending += [(each, *way) for each in reversed(above)]
        return found

    def run_by(self, site: Site) -> Iterator[Function]:
        """The functions of the file that a call runs, or that a call is given."""
        called = site.node.func if isinstance(site.node, ast.Call) else site.node
        if isinstance(called, ast.Name):
            yield from self._functions_meant(called, site)
        elif isinstance(called, ast.Attribute) and called.attr in self._methods:
            yield from self._methods_meant(called, site)

    def _functions_meant(self, called: ast.Name, site: Site) -> Iterator[Function]:
        around: list[ast.AST | None] = [*definitions_around(site.scope), None]
        for value in resolve(called, site.scope):
            if isinstance(value, Local) and not value.definition.is_class:
                name = value.definition.name
                found = (self._functions.get((each, name)) for each in around)
                yield from next((each for each in found if each), ())

    def _methods_meant(self, called: ast.Attribute, site: Site) -> Iterator[Function]:
        owners = self._methods[called.attr]
        if isinstance(called.value, ast.Name) and called.value.id in ("self", "cls"):
            classes = {
                d.name for d in definitions_around(site.scope) if isinstance(d, ast.ClassDef)
            }
            own = [function for owner, function in owners if owner in classes]
            yield from own or (function for _, function in owners)
            return
        if isinstance(called.value, ast.Call) and getattr(called.value.func, "id", "") == "super":
            return
        values = resolve(called.value, site.scope)
        meant = {v.definition.name for v in values if isinstance(v, (LocalInstance, Local))}
        known = [function for owner, function in owners if owner in meant]
        if known:
            yield from known
        elif called.attr not in _OF_EVERY_OBJECT and len(owners) == 1:
            yield owners[0][1]


_Functions = dict[tuple[ast.AST | None, str], list[Function]]
_Methods = dict[str, list[tuple[str, Function]]]


def _definitions(tree: ast.Module) -> tuple[_Functions, _Methods]:
    """Functions by what they are defined in and their names; methods by their names."""
    functions: _Functions = defaultdict(list)
    methods: _Methods = defaultdict(list)
    pending: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while pending:
        node, owner = pending.pop()
        if isinstance(node, Function):
            if isinstance(owner, ast.ClassDef):
                methods[node.name].append((owner.name, node))
            else:
                functions[owner, node.name].append(node)
        inner = node if isinstance(node, (Function, ast.ClassDef)) else owner
        pending += [(child, inner) for child in children(node)]
    return functions, methods


def _sites(body: Sequence[ast.stmt], module: Scope) -> Iterator[Site]:
    """All calls, and the names that calls are given."""
    for node, place in placed_nodes(body, module):
        if isinstance(node, ast.Call):
            around = (place.scope, place.function, place.loops, place.statements)
            yield Site(node, *around)
            for argument in (*node.args, *(k.value for k in node.keywords)):
                if isinstance(argument, (ast.Name, ast.Attribute)):
                    yield Site(argument, *around)
