"""Which calls of a program run which of its functions, and in which loops they stand."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Anything, Local, Qualified, resolve
from npulens.syntax.scopes import Scope, definitions_around
from npulens.syntax.values import last_name
from npulens.syntax.walking import children, nodes_below
from npulens.training.node_places import Loop, Place
from npulens.training.program import Program

__all__ = ["CallSites", "Loop", "Path", "Site"]
_MAX_DEPTH = 12
_MAX_PATHS = 64
_OF_EVERY_OBJECT = frozenset(
    {"train", "eval", "step", "forward", "backward", "to", "cuda", "save", "load", "update", "run"}
    | {"reset", "get", "add", "append", "close", "zero_grad", "parameters", "state_dict", "log"}
)
"""Methods so common that an unknown receiver says nothing."""
_STARTS_WITH_TARGET = frozenset({"Process", "Thread"})
_STARTS = frozenset({"spawn", "start_processes"})
"""What runs a function that it is given in another process, or beside the caller."""


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


class Objects(Protocol):
    """What is known of the objects of a program, once values are followed."""

    def classes_of(self, node: ast.expr) -> Iterable[ast.ClassDef]:
        """The classes of the program of which an expression may be an object."""

    def classes_made(self, call: ast.expr) -> Iterable[ast.ClassDef]:
        """The classes of which a call makes an object."""

    def is_made(self, owner: ast.ClassDef) -> bool:
        """Whether the program makes objects of a class."""


class CallSites:
    """The calls of a program, and which of its functions they run.

    Of the script that is started all are known, of other modules those that it reaches.
    """

    def __init__(self, program: Program, objects: Objects | None = None) -> None:
        self.program = program
        self._objects = objects
        self._functions, self._methods = _definitions(program)
        self._run: dict[ast.expr, tuple[Function, ...]] = {}
        self._used: dict[ast.AST, dict[str, set[str]]] = {}
        self._had: dict[ast.ClassDef, set[str]] = {}
        self._training: dict[Function, bool] = {}
        self._started = frozenset(_started(node for node, _ in program.placed))
        every = [*_sites(program.placed)]
        self.reached = self._reach(every)
        self.all = tuple(site for site in every if self.is_reached(site.function, site.scope))
        self._callers: dict[Function, list[Site]] = defaultdict(list)
        for site in self.all:
            for function in self.run_by(site):
                self._callers[function].append(site)

    def is_reached(self, function: Function | None, scope: Scope) -> bool:
        """Whether what stands in a function may run: all of the script that is started may."""
        if function is None or function in self.reached:
            return True
        return self.program.module_at(scope) is self.program.start

    def _reach(self, every: Sequence[Site]) -> set[Function]:
        """The functions of other modules that the script runs."""
        inside: dict[Function | None, list[Site]] = defaultdict(list)
        start = self.program.start
        pending: list[Site] = []
        for site in every:
            inside[site.function].append(site)
            if site.function is None or self.program.module_at(site.scope) is start:
                pending.append(site)
        reached: set[Function] = set()
        while pending:
            site = pending.pop()
            for function in (*self.run_by(site), *self._run_unseen(site)):
                if function in reached:  # and so is what is nested in it
                    continue
                for each in (function, *_nested(function)):
                    if each not in reached:
                        reached.add(each)
                        pending += inside[each]
        return reached

    def _run_unseen(self, site: Site) -> Iterator[Function]:
        """What nobody calls by name of an object that a call makes: its special methods."""
        called = site.node.func if isinstance(site.node, ast.Call) else site.node
        classes = [*self.program.meant(called, site.scope)]
        classes += self._objects.classes_made(site.node) if self._objects is not None else ()
        for made in classes:
            if isinstance(made, ast.ClassDef):
                for owner in self.program.bases(made):
                    yield from (
                        node
                        for node in owner.body
                        if isinstance(node, Function)
                        and (node.decorator_list or node.name in _UNSEEN or node.name[:2] == "__")
                    )

    @property
    def edges(self) -> int:
        """How many pairs of a call and a function that it runs there are."""
        return sum(map(len, self._callers.values()))

    def calls(self) -> Iterator[tuple[Site, ast.Call]]:
        """The sites that are calls."""
        for site in self.all:
            if isinstance(site.node, ast.Call):
                yield site, site.node

    def callers(self, function: Function) -> Sequence[Site]:
        """The sites that run a function."""
        return self._callers.get(function, ())

    def paths_to(self, site: Site) -> list[Path]:
        """The ways to a site, from the module or from functions that nothing of the file calls.

        Loops that only start processes are around none of what these do.
        """
        found: list[Path] = []
        pending: list[tuple[Site, ...]] = [(site,)]
        while pending and len(found) < _MAX_PATHS:
            way = pending.pop()
            function = way[0].function
            above = [] if function is None else self._callers.get(function, [])
            above = [s for s in above if all(s.function is not w.function for w in way)]
            if any(each.node in self._started for each in way):
                above = [s._replace(loops=()) for s in above]
            above = [s._replace(loops=()) if s.node in self._started else s for s in above]
            if not above or len(way) >= _MAX_DEPTH:
                found.append(Path(way))
            pending += [(each, *way) for each in reversed(above)]
        return found

    @cached_property
    def site_of(self) -> dict[ast.expr, Site]:
        """The sites of the nodes that may run."""
        return {site.node: site for site in self.all}

    def run_by(self, site: Site) -> tuple[Function, ...]:
        """The functions of the program that a call runs, or that a call is given."""
        if site.node not in self._run:
            self._run[site.node] = tuple(dict.fromkeys(self._found_for(site)))
        return self._run[site.node]

    def nodes_run(self, tops: Iterable[ast.AST]) -> Iterator[ast.AST]:
        """The nodes below some, and below the functions that these run, each function once."""
        pending, known = [*tops], set[ast.AST]()
        while pending:
            top = pending.pop()
            if top in known:
                continue
            known.add(top)
            for node in nodes_below(top):
                yield node
                site = self.site_of.get(node) if isinstance(node, ast.expr) else None
                if site is not None:
                    pending += self.run_by(site)

    def _found_for(self, site: Site) -> Iterator[Function]:
        called = site.node.func if isinstance(site.node, ast.Call) else site.node
        if isinstance(called, ast.Name):
            yield from self._functions_meant(called, site)
            yield from self._imported(called, site)
        elif isinstance(called, ast.Attribute) and called.attr in self._methods:
            yield from self._methods_meant(called, site)
        elif isinstance(called, ast.Attribute):
            yield from self._imported(called, site)

    def _imported(self, called: ast.expr, site: Site) -> Iterator[Function]:
        """A function of another module."""
        if any(isinstance(v, Qualified) for v in resolve(called, site.scope)):
            found = self.program.meant(called, site.scope)
            yield from (each for each in found if isinstance(each, Function))

    def _functions_meant(self, called: ast.Name, site: Site) -> Iterator[Function]:
        around: list[ast.AST | None] = [*definitions_around(site.scope)]
        around.append(self.program.module_at(site.scope).tree)
        for value in resolve(called, site.scope):
            if isinstance(value, Local) and not value.definition.is_class:
                name = value.definition.name
                found = (self._functions.get((each, name)) for each in around)
                yield from next((each for each in found if each), ())

    def _methods_meant(self, called: ast.Attribute, site: Site) -> Iterator[Function]:
        owners = self._methods[called.attr]
        program = self.program
        if isinstance(called.value, ast.Name) and called.value.id in ("self", "cls"):
            around = [d for d in definitions_around(site.scope) if isinstance(d, ast.ClassDef)]
            if around:
                own = [*self._methods_of(around[:1], owners, is_self=True)]
                yield from own or (f for _, f in owners[: len(owners) == 1])
            else:
                yield from (function for _, function in owners)
            return
        if isinstance(called.value, ast.Call) and getattr(called.value.func, "id", "") == "super":
            around = [d for d in definitions_around(site.scope) if isinstance(d, ast.ClassDef)]
            for owner in around[:1]:
                above = (program.method(base, called.attr) for base in program.bases(owner)[1:])
                yield from (each for each in above if each is not None)
            return
        meant = [*program.instances(called.value, site.scope)]
        meant += self._objects.classes_of(called.value) if self._objects is not None else ()
        meant += [c for c in program.meant(called.value, site.scope) if isinstance(c, ast.ClassDef)]
        known = [*self._methods_of(meant, owners)]
        known += self._imported(called, site)
        if known:
            yield from known
        elif called.attr not in _OF_EVERY_OBJECT and len(owners) == 1 and not meant:
            yield from (f for _, f in owners if _is_near(site, f, program))
        elif not meant and all(isinstance(v, Anything) for v in resolve(called.value, site.scope)):
            near = [
                (owner, f) for owner, f in owners if _is_near(site, f, program) and self._trains(f)
            ]
            if len(near) == 1 and self._is_like(called, site, near[0][0]):
                yield near[0][1]

    def _is_like(self, called: ast.Attribute, site: Site, owner: ast.ClassDef) -> bool:
        """Whether an object is used as those of a class are, by more than one attribute."""
        around = site.function or self.program.module_at(site.scope).tree
        if around not in self._used:
            self._used[around] = _attributes_used(around)
        used = self._used[around].get(ast.unparse(called.value), set())
        if owner not in self._had:
            below = (node for base in self.program.bases(owner) for node in nodes_below(base))
            names = (getattr(n, "name", None) or getattr(n, "attr", None) for n in below)
            self._had[owner] = {name for name in names if name}
        return len(used) > 1 and used <= self._had[owner]

    def _trains(self, function: Function) -> bool:
        """Whether a method computes gradients itself."""
        if function not in self._training:
            below = (n for n in nodes_below(function) if isinstance(n, ast.Attribute))
            self._training[function] = any(n.attr == "backward" for n in below)
        return self._training[function]

    def _methods_of(
        self,
        classes: Sequence[ast.ClassDef],
        owners: Sequence[tuple[ast.ClassDef, Function]],
        *,
        is_self: bool = False,
    ) -> Iterator[Function]:
        """The methods of a name that objects of some classes may have."""
        for owner in classes:
            bases = self.program.bases(owner)
            own = next((f for base in bases for o, f in owners if o is base), None)
            derived = self.program.derived.get(owner, ()) if is_self else ()
            if self._objects is not None:
                derived = [each for each in derived if self._objects.is_made(each)]
            overriding = [f for each in derived for o, f in owners if o is each]
            yield from (each for each in (own, *overriding) if each is not None)


_UNSEEN = frozenset({"forward"})


def _attributes_used(around: ast.AST) -> dict[str, set[str]]:
    """The attributes that some code uses, by what their owners are written as."""
    used: dict[str, set[str]] = defaultdict(set)
    for node in nodes_below(around):
        if isinstance(node, ast.Attribute):
            used[ast.unparse(node.value)].add(node.attr)
    return used


def _nested(function: Function) -> Iterator[Function]:
    yield from (n for n in nodes_below(function) if isinstance(n, Function) and n is not function)


def _is_near(site: Site, function: Function, program: Program) -> bool:
    """Whether a method that only its name leads to stands in the module that calls it."""
    if len(program.modules) == 1:
        return True
    return program.module_with[function] is program.module_at(site.scope)


_Functions = dict[tuple[ast.AST | None, str], list[Function]]
_Methods = dict[str, list[tuple[ast.ClassDef, Function]]]


def _definitions(program: Program) -> tuple[_Functions, _Methods]:
    """Functions by what they are defined in and their names; methods by their names."""
    functions: _Functions = defaultdict(list)
    methods: _Methods = defaultdict(list)
    pending: list[tuple[ast.AST, ast.AST]] = [(m.tree, m.tree) for m in program.modules]
    while pending:
        node, owner = pending.pop()
        if isinstance(node, Function):
            if isinstance(owner, ast.ClassDef):
                methods[node.name].append((owner, node))
            else:
                functions[owner, node.name].append(node)
        inner = node if isinstance(node, (Function, ast.ClassDef)) else owner
        pending += [(child, inner) for child in children(node)]
    return functions, methods


def _started(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The functions that are started beside what starts them: `Process(target=work)`."""
    for node in nodes:
        if isinstance(node, ast.Call):
            if last_name(node.func) in _STARTS:
                yield from node.args[:1]
                yield from (k.value for k in node.keywords if k.arg == "fn")
            elif last_name(node.func) in _STARTS_WITH_TARGET:
                yield from (k.value for k in node.keywords if k.arg == "target")


def _sites(placed: Iterable[tuple[ast.AST, Place]]) -> Iterator[Site]:
    """All calls, and the names that calls are given."""
    for node, place in placed:
        if isinstance(node, ast.Call):
            around = (place.scope, place.function, place.loops, place.statements)
            yield Site(node, *around)
            for argument in (*node.args, *(k.value for k in node.keywords)):
                if isinstance(argument, (ast.Name, ast.Attribute)):
                    yield Site(argument, *around)
