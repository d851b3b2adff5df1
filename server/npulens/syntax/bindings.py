"""Which names a block of statements binds, to what, and where."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.other_modules import member_of
from npulens.syntax.values import (
    UNKNOWN,
    Called,
    Defined,
    Either,
    Expression,
    Imported,
    dotted_name,
    expression,
)
from npulens.syntax.walking import nodes_below

Place = tuple[int, int]
"""Line and column as the tree counts them, enough to compare positions."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BINDING_NOTHING = (ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Pass)
_WHOLE = ((0, 0), (1 << 60, 0))
_LATER = (1 << 60, 0)
_NEVER = (_LATER, _LATER)


class Binding(NamedTuple):
    """A name bound to a value.

    Attributes:
        place: From where on.
        block: First and last place of the innermost conditional block that holds it; the whole
            scope if it is not conditional.
    """

    value: Expression
    place: Place
    block: tuple[Place, Place] = _WHOLE

    @property
    def is_conditional(self) -> bool:
        """Whether it is bound in a conditional block only."""
        return self.block != _WHOLE


class Bindings:
    """The names one scope binds, in order of place.

    Attributes:
        stars: Modules of `from module import *`, with the dots of relative ones.
        outer: Names declared `global` or `nonlocal`.
    """

    __slots__ = ("names", "outer", "stars")

    def __init__(self) -> None:
        self.names: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        self.outer: set[str] = set()


def walrus_lines(text: str) -> list[int]:
    """The 1-based lines of a text on which `:=` occurs."""
    if ":=" not in text:
        return []
    return [number for number, line in enumerate(text.split("\n"), 1) if ":=" in line]


def bindings_of(body: Iterable[ast.stmt], walrus_lines: Sequence[int]) -> Bindings:
    """The names that the statements of a scope bind, without those of nested functions."""
    collector = _Collector(walrus_lines)
    collector.block(body, _WHOLE)
    return collector.result


def parameter_bindings(arguments: ast.arguments) -> dict[str, list[Binding]]:
    """The parameters of a function; a default is one value a parameter may have."""
    pairs = list(parameters_of(arguments))
    pairs += [(other, None) for other in (arguments.vararg, arguments.kwarg) if other is not None]
    return {
        parameter.arg: [Binding(_parameter_value(parameter, default), (0, 0))]
        for parameter, default in pairs
    }


def parameters_of(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters of a function, each with its default, but for `*args` and `**kwargs`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    yield from zip(positional, [*missing, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters of a function that have a default, each with it."""
    for parameter, default in parameters_of(arguments):
        if default is not None:
            yield parameter, default


def _parameter_value(parameter: ast.arg, default: ast.expr | None) -> Expression:
    """An instance of the class the annotation names, or the default."""
    annotated = annotated_value(parameter.annotation)
    return annotated if default is None else Either((annotated, expression(default)))


def annotated_value(annotation: ast.expr | None) -> Expression:
    """What a name annotated with a class holds: `Box`, `Optional[Box]`, `Box | None`."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        return annotated_value(annotation.slice) if annotation.value.id == "Optional" else UNKNOWN
    if isinstance(annotation, ast.BinOp):
        none = isinstance(annotation.right, ast.Constant) and annotation.right.value is None
        return annotated_value(annotation.left) if none else UNKNOWN
    if isinstance(annotation, (ast.Name, ast.Attribute)):
        name = dotted_name(annotation)
        return UNKNOWN if name is None else Called(name)
    return UNKNOWN


def target_names(target: ast.expr) -> list[str]:
    """The plain names an assignment target binds."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Starred):
        return target_names(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in target_names(element)]
    return []


class _Collector:
    def __init__(self, walrus_lines: Sequence[int]) -> None:
        self.result = Bindings()
        self.walrus_lines = walrus_lines

    def bind(
        self, name: str, value: Expression, node: ast.stmt | ast.expr, block: tuple[Place, Place]
    ) -> None:
        self.result.names.setdefault(name, []).append(Binding(value, _end(node), block))

    def block(self, body: Iterable[ast.stmt], block: tuple[Place, Place]) -> None:
        for statement in body:
            self.statement(statement, block)

    def conditional(self, body: list[ast.stmt]) -> None:
        if body:
            self.block(body, ((body[0].lineno, body[0].col_offset), _end(body[-1])))

    def statement(self, node: ast.stmt, block: tuple[Place, Place]) -> None:
        if self.walrus_lines and any(
            node.lineno <= line <= (node.end_lineno or 0) for line in self.walrus_lines
        ):
            self.walruses(node, block)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value, node, block)
        elif isinstance(node, _BINDING_NOTHING):
            return
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, block)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, node.value, node, block)
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, None, node, block)
        elif isinstance(node, Function):
            positional = [*node.args.posonlyargs, *node.args.args]
            parameters = tuple(parameter.arg for parameter in positional)
            self.bind(node.name, Defined(node.name, False, parameters=parameters), node, block)
        elif isinstance(node, ast.ClassDef):
            self.bind(node.name, class_definition(node), node, block)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.assign(target, None, node, block)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.result.outer.update(node.names)
        else:
            self.compound(node, block)

    def compound(self, node: ast.stmt, block: tuple[Place, Place]) -> None:
        if isinstance(node, ast.If):
            self.branches(node)
            return
        if isinstance(node, (ast.For, ast.AsyncFor)):
            for name in target_names(node.target):
                self.bind(name, UNKNOWN, node.iter, block)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, None, item.context_expr, block)
            self.block(node.body, block)
            return
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for part in nodes_below(case.pattern):
                    bound = getattr(part, "name", None) or getattr(part, "rest", None)
                    if isinstance(bound, str):
                        place = (case.pattern.lineno, case.pattern.col_offset)
                        self.result.names.setdefault(bound, []).append(Binding(UNKNOWN, place))
                self.conditional(case.body)
            return
        for handler in getattr(node, "handlers", ()):
            if handler.name:
                start = (handler.lineno, handler.col_offset)
                binding = Binding(UNKNOWN, start, (start, _end(handler.body[-1])))
                self.result.names.setdefault(handler.name, []).append(binding)
            self.conditional(handler.body)
        for field in ("body", "orelse"):
            self.conditional(getattr(node, field, []))
        self.block(getattr(node, "finalbody", ()), block)

    def branches(self, node: ast.If) -> None:
        """An `if` chain, however long."""
        while True:
            self.conditional(node.body)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node = node.orelse[0]
        self.conditional(node.orelse)

    def imports(self, node: ast.Import | ast.ImportFrom, block: tuple[Place, Place]) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                self.bind(name, Imported(alias.name if alias.asname else name), node, block)
            elif alias.name == "*":
                self.result.stars.append("." * node.level + (node.module or ""))
            else:
                module = "." * node.level + (node.module or "")
                imported = Imported(member_of(module, alias.name))
                self.bind(alias.asname or alias.name, imported, node, block)

    def assign(
        self,
        target: ast.expr,
        value: ast.expr | None,
        node: ast.stmt | ast.expr,
        block: tuple[Place, Place],
    ) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, expression(value), node, block)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                values = list(value.elts)
            for element, part in zip(target.elts, values, strict=True):
                self.assign(element, part, node, block)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, None, node, block)

    def walruses(self, node: ast.stmt, block: tuple[Place, Place]) -> None:
        """Names bound by `:=` in the expressions of one statement, not in nested functions."""
        pending: list[ast.AST] = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.expr, ast.withitem))
        ]
        if isinstance(node, ast.Match):
            pending += [case.guard for case in node.cases if case.guard is not None]
        while pending:
            part = pending.pop()
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                self.bind(part.target.id, expression(part.value), part, block)
            if not isinstance(part, ast.Lambda):
                pending += ast.iter_child_nodes(part)


def _end(node: ast.stmt | ast.expr) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def class_definition(node: ast.ClassDef) -> Defined:
    """A class as its body alone shows it."""
    bases = tuple(name for base in node.bases if (name := dotted_name(base)) is not None)
    members: list[tuple[str, Expression]] = []
    for statement in node.body:
        if isinstance(statement, Function):
            members.append((statement.name, Defined(statement.name, False)))
        elif isinstance(statement, ast.Assign):
            members += [
                (target.id, expression(statement.value))
                for target in statement.targets
                if isinstance(target, ast.Name)
            ]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            members.append((statement.target.id, expression(statement.value)))
    parameters: tuple[str, ...] = ()
    for statement in node.body:
        if isinstance(statement, Function) and statement.name == "__init__":
            positional = [*statement.args.posonlyargs, *statement.args.args]
            parameters = tuple(parameter.arg for parameter in positional[1:])
    return Defined(node.name, True, bases, tuple(members), parameters)


def global_bindings(body: Iterable[ast.stmt]) -> dict[str, list[Binding]]:
    """Names of the module that functions bind under `global`, at a time that is not known."""
    found: dict[str, list[Binding]] = {}
    for statement in body:
        for node in nodes_below(statement):
            if isinstance(node, Function):
                inner = bindings_of(node.body, ())
                for name in inner.outer & inner.names.keys():
                    values = (Binding(b.value, _LATER, _NEVER) for b in inner.names[name])
                    found.setdefault(name, []).extend(values)
    return found
