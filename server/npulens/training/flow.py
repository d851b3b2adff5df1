"""Where a value comes from: names are followed to what makes them, through calls and modules."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Instance, Qualified, resolve, resolve_name
from npulens.syntax.scopes import Scope, definitions_around
from npulens.syntax.values import Name, dotted_name
from npulens.training.call_sites import CallSites, Site
from npulens.training.node_places import Place
from npulens.training.program import Program

Key = str | int | None
"""Which part of a tuple or dictionary; `None` is any."""
Owner = ast.AST
"""What a variable belongs to: a function, the class of `self`, or the tree of a module."""

_MOST_STEPS = 400
ITERATING = frozenset(
    {"enumerate", "tqdm", "notebook_tqdm", "iter", "zip", "cycle", "islice", "track"}
    | {"progress_bar", "log_every", "prefetch", "prange", "reversed", "chain", "Bar"}
)
"""What gives the elements of its arguments one after the other."""
_PASSING = ITERATING | {"next", "copy"}
_MODULES = frozenset({"Module", "LightningModule", "PreTrainedModel", "ModelMixin"})
RETURN_ITSELF = frozenset(
    {"to", "cuda", "npu", "cpu", "half", "float", "double", "bfloat16", "type", "train", "eval"}
    | {"requires_grad_", "apply"}
)
"""Methods of every module that return the module, of a wrapper the wrapper."""
_GIVING = RETURN_ITSELF | {"items", "values", "keys", "get"}
"""Methods that return their receiver, or parts of it."""


class Variable(NamedTuple):
    """A variable of a function, of the module or of the objects of a class."""

    owner: Owner
    name: str


class Value(NamedTuple):
    """An expression, and the part of its value that is meant: `pair[0]` has the path `(0,)`."""

    node: ast.expr
    path: tuple[Key, ...] = ()


class Definition(NamedTuple):
    """What a variable is assigned."""

    value: Value
    statement: ast.stmt


class Flow:
    """Follows values through the assignments, parameters and results of a program."""

    def __init__(self, program: Program, sites: CallSites) -> None:
        self.program = program
        self.sites = sites
        self.places: dict[ast.AST, Place] = {
            node: place
            for node, place in program.placed
            if sites.is_reached(place.function, place.scope)
        }
        self.definitions: dict[Variable, list[Definition]] = defaultdict(list)
        self.added: dict[Variable, list[ast.AugAssign]] = defaultdict(list)
        self._results: dict[Function, list[ast.expr]] = defaultdict(list)
        self._constructed: dict[Function, list[Site]] = defaultdict(list)
        self._globals: set[Variable] = set()
        self._library_names: dict[ast.expr, list[str]] = {}
        self._bound: dict[Function, frozenset[str]] = {}
        self._run: dict[int, list[Function]] = defaultdict(list)
        self._classes: dict[ast.expr, frozenset[ast.ClassDef]] = {}
        self._classes_named: dict[ast.expr, list[ast.ClassDef]] = {}
        functions = [node for node in self.places if isinstance(node, Function)]
        for node, place in self.places.items():
            self._read(node, place)
        for function in functions:
            for site in sites.callers(function):
                self._run[id(site.node)].append(function)
        for node, place in self.places.items():
            if isinstance(node, ast.stmt):
                self._read_assignment(node, place)
        self._forget_classes()  # they were looked for before all definitions were there
        self._made: set[ast.ClassDef] = set()
        for site, call in sites.calls():
            for made in self.classes_made(call):
                self._made.update(program.bases(made))
                maker = program.method(made, "__init__")
                if maker is not None:
                    self._constructed[maker].append(site)
        self._forget_classes()  # constructors were not all there either

    def _forget_classes(self) -> None:
        self._classes.clear()
        self._classes_named.clear()

    def _read(self, node: ast.AST, place: Place) -> None:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            owner = place.function or self.program.module_at(place.scope).tree
            self._globals.update(Variable(owner, name) for name in node.names)
        elif (
            isinstance(node, (ast.Return, ast.Yield))
            and node.value is not None
            and place.function is not None
        ):
            self._results[place.function].append(node.value)

    def _read_assignment(self, node: ast.stmt, place: Place) -> None:
        if isinstance(node, ast.AugAssign):
            added_to = self.variable(node.target, place)
            if added_to is not None:
                self.added[added_to].append(node)
        for target, value in _assigned(node):
            variable = self.variable(target, place)
            if variable is not None:
                self.definitions[variable].append(Definition(value, node))

    def variable(self, node: ast.expr, place: Place | None = None) -> Variable | None:
        """The variable that an expression names; `None` of all that is no variable."""
        place = place or self.places.get(node)
        if place is None:
            return None
        if isinstance(node, ast.Name):
            return self._named(node.id, place)
        if isinstance(node, ast.Attribute):
            owner = self._class_of(node.value, place)
            if owner is not None:
                return Variable(self.program.family(owner), node.attr)
            return self._elsewhere(node, place)
        return None

    def library_names(self, node: ast.expr) -> list[str]:
        """The full names of what an expression means of other modules, or is an object of."""
        if node not in self._library_names:
            place = self.places.get(node)
            values = [] if place is None else resolve(node, place.scope)
            names = [v.name for v in values if isinstance(v, (Qualified, Instance))]
            self._library_names[node] = names
        return self._library_names[node]

    def _named(self, name: str, place: Place) -> Variable:
        function = place.function
        tree = self.program.module_at(place.scope).tree
        around = [function] if function is not None else []
        around += [d for d in definitions_around(place.scope) if isinstance(d, Function)]
        for each in around:
            if Variable(each, name) in self._globals:
                return Variable(tree, name)
            if each not in self._bound:
                self._bound[each] = _bound(each)
            if name in self._bound[each]:
                return Variable(each, name)
        return self._imported(Name(name), place.scope) or Variable(tree, name)

    def _elsewhere(self, node: ast.Attribute, place: Place) -> Variable | None:
        """A variable of another module, as `data.loader`."""
        written = dotted_name(node)
        return None if written is None else self._imported(written, place.scope)

    def _imported(self, name: Name, scope: Scope) -> Variable | None:
        if len(self.program.modules) == 1:
            return None
        for value in resolve_name(name, scope, None):
            if isinstance(value, Qualified):
                found = self.program.variable(value.name, self.program.module_at(scope))
                if found is not None:
                    return Variable(*found)
        return None

    def _class_of(self, node: ast.expr, place: Place) -> ast.ClassDef | None:
        """The class of the program whose object an expression is."""
        if isinstance(node, ast.Name) and node.id == "self" and place.owner is not None:
            return place.owner
        found = next(self.program.instances(node, place.scope), None)
        if found is None and node in self.places and isinstance(node, (ast.Name, ast.Attribute)):
            return next(iter(self.classes_of(node)), None)
        return found

    def classes_of(self, node: ast.expr) -> frozenset[ast.ClassDef]:
        """The classes of the program of which an expression may be an object, by what makes it."""
        if len(self.program.modules) == 1:
            return frozenset()
        if node not in self._classes:
            self._classes[node] = frozenset()  # while it is looked for
            made = (self.classes_made(v.node) for v in self.origins(node) if _is_call(v))
            self._classes[node] = frozenset(each for found in made for each in found)
        return self._classes[node]

    def class_made(self, call: ast.expr) -> ast.ClassDef | None:
        """The class of the program of which a call makes an object."""
        return next(iter(self.classes_made(call)), None)

    def classes_made(self, call: ast.expr) -> list[ast.ClassDef]:
        """The same where several may be meant, as by a function that returns a class."""
        place = self.places.get(call)
        if place is None or not isinstance(call, ast.Call):
            return []
        found = self.program.meant(call.func, place.scope)
        meant = [each for each in found if isinstance(each, ast.ClassDef)]
        if meant or len(self.program.modules) == 1 or self._run.get(id(call)):
            return meant
        if call.func not in self._classes_named:
            self._classes_named[call.func] = []  # while it is looked for
            behind = [v.node for v in self.origins(call.func) if not v.path]
            self._classes_named[call.func] = [
                each
                for node in behind
                if isinstance(node, (ast.Name, ast.Attribute)) and node in self.places
                for each in self.program.meant(node, self.places[node].scope)
                if isinstance(each, ast.ClassDef)
            ]
        return self._classes_named[call.func]

    def is_made(self, owner: ast.ClassDef) -> bool:
        """Whether the program makes objects of a class, or of one that is derived from it."""
        return owner in self._made

    def is_module(self, owner: ast.ClassDef) -> bool:
        """Whether a class is one of modules of PyTorch."""
        return any(
            getattr(base, "attr", getattr(base, "id", "")) in _MODULES
            for each in self.program.bases(owner)
            for base in each.bases
        )

    def receivers(self, function: Function) -> list[ast.expr]:
        """The objects whose method calls of the program run."""
        called = (getattr(site.node, "func", None) for site in self.calls_of(function))
        return [each.value for each in called if isinstance(each, ast.Attribute)]

    def functions_run(self, call: ast.Call) -> list[Function]:
        """The functions of the file that a call runs."""
        if made := self.classes_made(call):
            makers = (self.program.method(each, "__init__") for each in made)
            return [each for each in makers if each is not None]
        return self._run.get(id(call), [])

    def calls_of(self, function: Function) -> list[Site]:
        """The calls that run a function, or make an object whose constructor it is."""
        callers = [s for s in self.sites.callers(function) if isinstance(s.node, ast.Call)]
        return [*callers, *self._constructed.get(function, ())]

    def is_parameter(self, variable: Variable) -> bool:
        owner = variable.owner
        return isinstance(owner, Function) and variable.name in _parameters(owner)

    def given(self, variable: Variable) -> list[ast.expr]:
        """What calls of the file give for a parameter."""
        function = variable.owner
        assert isinstance(function, Function)
        found = (
            self.argument(site.node, function, variable.name) for site in self.calls_of(function)
        )
        return [each for each in found if each is not None]

    def argument(self, call: ast.expr, function: Function, name: str) -> ast.expr | None:
        """What a call gives for a parameter of a function; `None` where it is not seen."""
        if not isinstance(call, ast.Call):
            return None
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if name not in parameters:
            return None
        at = parameters.index(name)
        place = self.places.get(function)
        if (
            place is not None
            and place.owner is not None
            and function in place.owner.body
            and not any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list)
        ):
            at -= 1
        if not 0 <= at < len(call.args) or any(
            isinstance(a, ast.Starred) for a in call.args[: at + 1]
        ):
            return None
        return call.args[at]

    def parameter_of(self, call: ast.Call, argument: ast.expr) -> list[Variable]:
        """The parameters of functions of the file for which a call gives an argument."""
        return [
            Variable(function, name)
            for function in self.functions_run(call)
            for name in _parameters(function)
            if self.argument(call, function, name) is argument
        ]

    def origins(self, node: ast.expr, path: tuple[Key, ...] = ()) -> list[Value]:
        """The expressions that make a value, as far back as the file shows it."""
        pending, found = [Value(node, path)], list[Value]()
        known: set[tuple[int, tuple[Key, ...]]] = set()
        while pending and len(known) < _MOST_STEPS:
            value = pending.pop()
            if (id(value.node), value.path) in known:
                continue
            known.add((id(value.node), value.path))
            behind = list(self.behind(value))
            if not behind:
                found.append(value)
            pending += reversed(behind)
        return found

    def behind(self, value: Value) -> Iterator[Value]:
        """What a value comes from, one step back; nothing if it is made here."""
        node, path = value
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._behind_variable(node, path)
        elif isinstance(node, ast.Call):
            yield from self._behind_call(node, path)
        elif isinstance(node, ast.Subscript):
            yield Value(node.value, (_key(node.slice), *path))
        elif isinstance(node, ast.IfExp):
            yield from (Value(each, path) for each in (node.body, node.orelse))
        elif isinstance(node, ast.BoolOp):
            yield from (Value(each, path) for each in node.values)
        elif isinstance(node, ast.NamedExpr):
            yield Value(node.value, path)
        elif path:
            yield from _element(node, path)

    def _behind_variable(self, node: ast.expr, path: tuple[Key, ...]) -> Iterator[Value]:
        variable = self.variable(node)
        if variable is None:
            return
        for each in self.definitions.get(variable, ()):
            yield Value(each.value.node, (*each.value.path, *path))
        if self.is_parameter(variable):
            yield from (Value(each, path) for each in self.given(variable))

    def _behind_call(self, node: ast.Call, path: tuple[Key, ...]) -> Iterator[Value]:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        run = self.functions_run(node)
        if run and self.class_made(node) is None:
            for each in run:
                yield from (Value(result, path) for result in self._results.get(each, ()))
        elif name == "DataParallel" and node.args:
            yield Value(node.args[0], path)
        elif name in _PASSING and (given := _iterated(node)):
            yield from (Value(each, ()) for each in given if not isinstance(each, ast.Constant))
        elif name in _GIVING and isinstance(function, ast.Attribute):
            yield Value(
                function.value, (None, *path) if name in ("items", "values", "get") else path
            )

    def results(self, function: Function) -> list[ast.expr]:
        """What a function returns or yields."""
        return self._results.get(function, [])


def _iterated(call: ast.Call) -> list[ast.expr]:
    """What a call that passes elements on is given: `tqdm(loader)`, `tqdm(iterable=loader)`."""
    return call.args or [k.value for k in call.keywords if k.arg in ("iterable", "sequence")]


def _is_call(value: Value) -> bool:
    return not value.path and isinstance(value.node, ast.Call)


def _element(node: ast.expr, path: tuple[Key, ...]) -> Iterator[Value]:
    """A part of what a display or comprehension makes."""
    key, rest = path[0], path[1:]
    if isinstance(node, (ast.Tuple, ast.List)):
        if isinstance(key, int) and -len(node.elts) <= key < len(node.elts):
            yield Value(node.elts[key], rest)
        else:
            yield from (Value(each, rest) for each in node.elts)
    elif isinstance(node, ast.Dict):
        pairs = [
            (_key(k) if k is not None else None, v)
            for k, v in zip(node.keys, node.values, strict=True)
        ]
        same = [v for k, v in pairs if k is not None and k == key]
        yield from (Value(each, rest) for each in same or [v for _, v in pairs])
    elif isinstance(node, ast.DictComp):
        yield Value(node.value, rest)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield Value(node.elt, rest)


def _key(node: ast.expr) -> Key:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int)):
        return node.value
    return None


def _assigned(node: ast.stmt) -> Iterator[tuple[ast.expr, Value]]:
    """The targets of an assignment, each with what it is assigned."""
    pairs: list[tuple[ast.expr, Value]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, Value(node.value)) for target in node.targets]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        pairs = [(node.target, Value(node.value))]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        pairs = [(node.target, Value(node.iter, (None,)))]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        pairs = [
            (item.optional_vars, Value(item.context_expr))
            for item in node.items
            if item.optional_vars is not None
        ]
    while pairs:
        target, value = pairs.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            pairs += [
                (each, _part(value, at, len(target.elts))) for at, each in enumerate(target.elts)
            ]
        elif isinstance(target, ast.Subscript):
            pairs.append((target.value, value._replace(path=())))
        else:
            yield target, value


def _part(value: Value, at: int, count: int) -> Value:
    node = value.node
    if not value.path and isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == count:
        return Value(node.elts[at])
    return Value(node, (*value.path, at))


def _parameters(node: Function) -> list[str]:
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _bound(node: Function) -> frozenset[str]:
    """The names that a function binds by itself."""
    inner = {*_parameters(node)}
    pending: list[ast.AST] = [*node.body]
    while pending:
        each = pending.pop()
        if isinstance(each, (Function, ast.ClassDef)):
            inner.add(each.name)
            continue
        if isinstance(each, ast.Lambda):
            continue
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            inner.add(each.id)
        pending += ast.iter_child_nodes(each)
    return frozenset(inner)


def names_of(nodes: Iterable[ast.AST]) -> set[str]:
    """The names in some nodes."""
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
