"""Reads what one module of a library defines, and what each definition cannot do without.

Read from its tree alone; `workspace/libraries/apis.py` puts modules together.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.workspace.libraries.needs import (
    NOTHING,
    Binding,
    Class,
    Function,
    Module,
    Need,
    Obstacle,
    Reference,
    Steps,
    Ways,
)


def read_module(
    tree: ast.Module, lines: LineMap, name: str, is_package: bool, found: Mapping[int, Obstacle]
) -> Module:
    """What a module defines and needs.

    Args:
        tree: Its tree.
        lines: Its text.
        name: Its name, with dots.
        is_package: Whether it is the `__init__` of a package.
        found: What the NPU lacks, by the offset at which it is.

    Raises:
        RecursionError: It is nested too deeply.
    """
    return _Reader(lines, name, is_package, found).module(tree)


@dataclass
class _Scope:
    """The names of a function.

    Attributes:
        self_name: What it calls its instance, or empty.
        absolute: Those that are imports, with their names from the root.
        made: Those that hold what a call makes, with what is called.
        own: Those that are functions inside it, with their names in the module.
    """

    self_name: str = ""
    bound: set[str] = field(default_factory=set)
    absolute: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)


_QUERIES = re.compile(
    r"cuda|gpu|npu|xpu|cpu|mps|device|backend|available|installed|fused|flash|triton"
)
"""In the test of an early return: what follows is one of several ways to do the same."""
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = ast.For | ast.AsyncFor | ast.While


class _Reader:
    def __init__(
        self, lines: LineMap, name: str, is_package: bool, found: Mapping[int, Obstacle]
    ) -> None:
        self._lines = lines
        self._found = dict(found)
        self._name = name
        self._is_package = is_package
        parts = name.split(".")
        self._package = parts if is_package else parts[:-1]
        self._names: dict[str, tuple[Binding, ...]] = {}
        self._stars: list[str] = []
        self._functions: dict[str, Function] = {}
        self._classes: dict[str, Class] = {}

    def module(self, tree: ast.Module) -> Module:
        need = self._block(tree.body, None, "")
        return Module(
            self._name,
            self._is_package,
            _of_import(need),
            self._names,
            tuple(self._stars),
            self._functions,
            self._classes,
        )

    # Blocks and statements. `scope` is that of the function around, `None` in a module or class;
    # `owner` is the name of the function or class around.

    def _block(self, body: Sequence[ast.stmt], scope: _Scope | None, owner: str) -> Need:
        parts: list[Need] = []
        for position, node in enumerate(body):
            if isinstance(node, ast.If) and not node.orelse and self._is_way_out(node):
                parts.append(self._expression(node.test, scope))
                rest = self._block(body[position + 1 :], scope, owner)
                parts.append(_ways([self._block(node.body, scope, owner), rest]))
                break
            parts.append(self._statement(node, scope, owner))
        return _steps(parts)

    def _is_way_out(self, node: ast.If) -> bool:
        ends = isinstance(node.body[-1], ast.Return)
        return ends and _QUERIES.search(ast.unparse(node.test).lower()) is not None

    def _statement(self, node: ast.stmt, scope: _Scope | None, owner: str) -> Need:
        if isinstance(node, _FUNCTIONS):
            self._bind_own(node.name, scope, owner)
            if scope is not None or not owner:
                path = node.name if scope is None else scope.own[node.name]
                self._add(path, self._function(node, "", path, scope))
            return NOTHING
        if isinstance(node, ast.ClassDef):
            self._bind_own(node.name, scope, owner)
            if scope is None and not owner:
                if node.name in self._classes:
                    self._bind(node.name, Binding("other"))  # one of several
                self._classes[node.name] = self._class(node)
            return NOTHING
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return self._import(node, scope, owner)
        if isinstance(node, ast.If):
            arms = [node.body, node.orelse]
            needs = [self._block(arm, scope, owner) for arm in arms if not _raises(arm)]
            return _steps([self._expression(node.test, scope), _ways(needs)])
        if isinstance(node, ast.Try):
            return self._try(node, scope, owner)
        if isinstance(node, ast.Match):
            cases = [self._block(case.body, scope, owner) for case in node.cases]
            return _steps([self._expression(node.subject, scope), _ways([*cases, NOTHING])])
        if isinstance(node, _LOOPS):
            head = node.test if isinstance(node, ast.While) else node.iter
            return _steps([self._expression(head, scope), self._block(node.body, scope, owner)])
        if isinstance(node, (ast.With, ast.AsyncWith)):
            items = [self._expression(item, scope) for item in node.items]
            return _steps([*items, self._block(node.body, scope, owner)])
        if scope is None and not owner:
            self._bind_assigned(node)
        return _steps([self._expression(node, scope), *self._left_in(node)])

    def _add(self, path: str, function: Function) -> None:
        """Add a function, perhaps to another of its name under another condition."""
        known = self._functions.get(path)
        if known is not None:
            function = Function(_ways([known.need, function.need]))
        self._functions[path] = function

    def _try(self, node: ast.Try, scope: _Scope | None, owner: str) -> Need:
        tried = self._block([*node.body, *node.orelse], scope, owner)
        handlers = [
            self._block(handler.body, scope, owner)
            for handler in node.handlers
            if not _raises(handler.body)
        ]
        return _steps([_ways([tried, *handlers]), self._block(node.finalbody, scope, owner)])

    def _import(self, node: ast.Import | ast.ImportFrom, scope: _Scope | None, owner: str) -> Need:
        needs: list[Need] = [*self._left_in(node)]
        for local, path, modules in self._imported(node):
            needs += [Reference("module", module) for module in modules]
            if local == "*":
                self._stars.append(path)
            elif scope is not None:
                scope.absolute[local] = path
            elif not owner:
                self._bind(local, Binding("absolute", path))
        return _steps(needs)

    def _imported(
        self, node: ast.Import | ast.ImportFrom
    ) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """For each alias: the name it binds, what that represents, the modules that are run."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield alias.asname or top, alias.name if alias.asname else top, (alias.name,)
            return
        base = node.module or ""
        if node.level:
            kept = self._package[: len(self._package) - (node.level - 1)]
            base = ".".join([*kept, *([base] if base else [])])
        for alias in node.names:
            if alias.name == "*":
                yield "*", base, (base,)
            else:
                path = f"{base}.{alias.name}"
                yield alias.asname or alias.name, path, (base, path)

    # Definitions

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        self_name: str,
        path: str,
        outer: _Scope | None = None,
    ) -> Function:
        scope = _Scope(self_name, _bound_in(node))
        if outer is not None:
            scope.self_name = scope.self_name or outer.self_name
            scope.absolute, scope.made = dict(outer.absolute), dict(outer.made)
            scope.own = dict(outer.own)
            scope.bound |= outer.bound - set(outer.own)
        for inner in _inner(node):
            if isinstance(inner, _FUNCTIONS):
                scope.own[inner.name] = f"{path}.<locals>.{inner.name}"
            elif isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Call):
                made = _dotted(inner.value.func)
                for target in inner.targets:
                    if made and isinstance(target, ast.Name):
                        known = scope.made.setdefault(target.id, made)
                        scope.made[target.id] = made if known == made else ""
        decorators = [self._expression(d, None) for d in node.decorator_list]
        used = [self._called(_dotted(d), None) for d in node.decorator_list]
        body = self._block(node.body, scope, path)
        need = _steps([*decorators, *(each for each in used if each), body])
        names = {_dotted(d).rpartition(".")[2] for d in node.decorator_list}
        return Function(need, bool(names & {"property", "cached_property"}))

    def _class(self, node: ast.ClassDef) -> Class:
        methods: dict[str, Function] = {}
        attributes: dict[str, str] = {}
        heads: list[ast.AST] = [*node.decorator_list, *node.bases, *node.keywords]
        needs = [self._expression(head, None) for head in heads]
        needs += [c for d in node.decorator_list if (c := self._called(_dotted(d), None))]
        for member in node.body:
            if isinstance(member, _FUNCTIONS):
                arguments = [*member.args.posonlyargs, *member.args.args]
                static = any(_dotted(d) == "staticmethod" for d in member.decorator_list)
                self_name = "" if static or not arguments else arguments[0].arg
                path = f"{node.name}.{member.name}"
                methods[member.name] = self._function(member, self_name, path)
                attributes.update(_made_attributes(member, self_name))
            else:
                needs.append(self._statement(member, None, node.name))
        bases = tuple(base for each in node.bases if (base := _dotted(each)))
        return Class(bases, _steps(needs), methods, attributes)

    def _bind_own(self, name: str, scope: _Scope | None, owner: str) -> None:
        if scope is None and not owner:
            self._bind(name, Binding("own", name))

    def _bind_assigned(self, node: ast.stmt) -> None:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets, value = [node.target], node.value
        for target in targets:
            for inner in nodes_below(target):
                if isinstance(inner, ast.Name):
                    path = _dotted(value) if value is not None and inner is target else ""
                    self._bind(inner.id, Binding("alias", path) if path else Binding("other"))

    def _bind(self, name: str, binding: Binding) -> None:
        known = self._names.get(name, ())
        if binding not in known:
            self._names[name] = (*known, binding)

    # Expressions

    def _expression(self, node: ast.AST, scope: _Scope | None) -> Need:
        if isinstance(node, ast.Lambda):
            self._expression(node.body, scope)  # so that it is not left over
            return NOTHING
        if isinstance(node, ast.IfExp):
            arms = [self._expression(arm, scope) for arm in (node.body, node.orelse)]
            return _steps([self._expression(node.test, scope), _ways(arms)])
        if isinstance(node, ast.BoolOp):
            first, *_ = [self._expression(value, scope) for value in node.values]
            return first
        parts: list[Need] = []
        if isinstance(node, ast.Call) and (called := self._call(node, scope)) is not None:
            parts.append(called)
        elif isinstance(node, ast.Name) and scope is not None and node.id in scope.own:
            parts.append(Reference("name", scope.own[node.id]))
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and scope is not None
            and node.value.id == scope.self_name
        ):
            parts.append(Reference("property", node.attr))
        parts += [self._expression(child, scope) for child in ast.iter_child_nodes(node)]
        if isinstance(node, (ast.expr, ast.keyword, ast.alias, ast.arg)):
            at = self._lines.offset(node.lineno, node.col_offset)
            if (obstacle := self._found.pop(at, None)) is not None:
                parts.append(obstacle)
        return _steps(parts)

    def _call(self, node: ast.Call, scope: _Scope | None) -> Reference | None:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
            maker = _dotted(function.value.func)
            if maker == "super":
                return Reference("super", function.attr)
            return self._called(f"{maker}.{function.attr}", scope) if maker else None
        return self._called(_dotted(function), scope)

    def _called(self, path: str, scope: _Scope | None) -> Reference | None:
        """The definition that a name represents where it is used."""
        root, _, rest = path.partition(".")
        behind = f".{rest}" if rest else ""
        if not root:
            return None
        if scope is None:
            return Reference("name", path)
        if root == scope.self_name:
            return Reference("self", rest) if rest else None
        if root in scope.own:
            return Reference("name", scope.own[root]) if not rest else None
        if root in scope.absolute:
            return Reference("absolute", scope.absolute[root] + behind)
        if rest and (maker := scope.made.get(root)) and maker.partition(".")[0] != root:
            return self._called(maker + behind, scope)
        return None if root in scope.bound else Reference("name", path)

    def _left_in(self, node: ast.stmt) -> Iterator[Obstacle]:
        """The part of a statement where no expression starts, as in `from x import y`."""
        start = self._lines.offset(node.lineno, node.col_offset)
        end = self._lines.offset(node.end_lineno or 0, node.end_col_offset or 0)
        for at in [at for at in self._found if start <= at < end]:
            yield self._found.pop(at)


def _of_import(need: Need) -> Need:
    """What of the needs of a module stops its import."""
    if isinstance(need, Obstacle):
        return need if need.at_import else NOTHING
    if isinstance(need, Steps):
        return _steps(map(_of_import, need.parts))
    if isinstance(need, Ways):
        return _ways([_of_import(part) for part in need.parts])
    return need


def _steps(parts: Iterable[Need]) -> Need:
    needs = [part for part in parts if part != NOTHING]
    return needs[0] if len(needs) == 1 else Steps(tuple(needs))


def _ways(parts: Sequence[Need]) -> Need:
    if len(parts) == 1:
        return parts[0]
    return NOTHING if not parts or NOTHING in parts else Ways(tuple(parts))


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a block gives up."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def _dotted(node: ast.AST) -> str:
    """A name with dots, empty if it is none; a decorator may be called."""
    if isinstance(node, ast.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _inner(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes inside it."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _bound_in(function: ast.AST) -> set[str]:
    names = set()
    for node in _inner(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
    return names


def _made_attributes(method: ast.AST, self_name: str) -> Iterator[tuple[str, str]]:
    """What `self.x = Maker(...)` assigns."""
    for node in _inner(method):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                owner, _, name = _dotted(target).partition(".")
                if owner and owner == self_name and "." not in name:
                    yield name, _dotted(node.value.func)
