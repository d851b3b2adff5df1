"""A module for which it is asked what names an attribute: read in one pass."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import libcst as cst
from libcst import matchers as m
from libcst.metadata import (
    ExpressionContext,
    ExpressionContextProvider,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
)

_OWN = m.Attribute(value=m.Name("self"), attr=m.Name())
SETTINGS = frozenset({"args", "config", "cfg", "opt", "hparams"})
"""What is called so has settings as its attributes, no layers."""
_ATTRIBUTE = m.Name("getattr") | m.Name("setattr") | m.Name("hasattr") | m.Name("delattr")
_COMPUTED = m.FormattedString() | m.BinaryOperation() | m.Call()
_OWN_LOOKUP = m.Call(_ATTRIBUTE, [m.Arg(m.Name("self")), m.Arg(_COMPUTED), m.ZeroOrMore()])
_LOOKUP = m.Call(_ATTRIBUTE, [m.Arg(), m.Arg(m.FormattedString()), m.ZeroOrMore()])
_PART = m.Name("get_submodule") | m.Name("get_parameter")
_PATH_LOOKUP = m.Call(m.Attribute(attr=_PART), [m.Arg(m.FormattedString())])
_ESCAPE = re.compile(r"\\[A-Za-z]")


class Use(NamedTuple):
    """Where something is named; the line is that of the name."""

    node: cst.CSTNode
    line: int


class JoinedModule(cst.CSTVisitor):
    """A module with what its names mean, and where attributes are named.

    Attributes:
        calls: All calls, in the order in which they begin.
        classes: All classes.
        own: Where a class names an attribute of `self` or binds a name in its body.
        other: Where an attribute is named of something that may be a module.
        lookups: The texts that a class computes to look up an attribute of `self`.
        other_lookups: The texts that are formatted to look up what something may have.
        words: The words of strings without spaces, with the first line of each.
        names: How often a function has a name.
        assigned_calls: The calls that a function, or none, assigns to names.
        imported: What is imported at the top level.
    """

    def __init__(self, text: str) -> None:
        """Read it.

        Raises:
            ParserSyntaxError: It does not parse.
        """
        super().__init__()
        self.module = cst.parse_module(text)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        found = wrapper.resolve_many(
            (
                PositionProvider,
                ParentNodeProvider,
                QualifiedNameProvider,
                ExpressionContextProvider,
            )
        )
        self._positions: Mapping[cst.CSTNode, Any] = found[PositionProvider]
        self._parents: Mapping[cst.CSTNode, Any] = found[ParentNodeProvider]
        self._meanings: Mapping[cst.CSTNode, Any] = found[QualifiedNameProvider]
        self._contexts: Mapping[cst.CSTNode, Any] = found[ExpressionContextProvider]
        self.calls: list[cst.Call] = []
        self.classes: list[cst.ClassDef] = []
        self.own: dict[tuple[cst.ClassDef, str], list[Use]] = defaultdict(list)
        self.other: dict[str, list[Use]] = defaultdict(list)
        self.lookups: dict[cst.ClassDef, list[Use]] = defaultdict(list)
        self.other_lookups: list[Use] = []
        self.words: dict[str, Use] = {}
        self.names: Counter[tuple[cst.FunctionDef, str]] = Counter()
        self.imported = frozenset(_imported(self.module))
        self.assigned_calls: dict[tuple[cst.CSTNode | None, str], cst.Call] = {}
        self._before: dict[cst.CSTNode, cst.SimpleStatementLine] = {}
        self.module.visit(self)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Keep what a node says; called by LibCST."""
        if isinstance(node, cst.Name):
            self._keep_name(node)
        elif isinstance(node, cst.Attribute):
            self._keep_attribute(node)
        elif isinstance(node, cst.Call):
            self._keep_call(node)
        elif isinstance(node, (cst.SimpleString, cst.FormattedStringText)):
            self._keep_words(node)
        elif isinstance(node, cst.Assign):
            self._keep_assigned(node)
        elif isinstance(node, cst.IndentedBlock):
            self._keep_order(node)
        elif isinstance(node, cst.ClassDef):
            self._keep_class(node)
        return True

    def _keep_name(self, node: cst.Name) -> None:
        parent = self._parents[node]
        is_attribute = isinstance(parent, cst.Attribute) and parent.attr is node
        is_keyword = isinstance(parent, cst.Arg) and parent.keyword is node
        if not is_attribute and not is_keyword:
            for function in self.above(node):
                if isinstance(function, cst.FunctionDef):
                    self.names[function, node.value] += 1

    def _keep_attribute(self, node: cst.Attribute) -> None:
        name = node.attr.value
        use = Use(node, self.line(node.attr))
        owner = self._class_of(node) if m.matches(node, _OWN) else None
        if owner is not None:
            self.own[owner, name].append(use)
        elif _last_name(node.value) not in SETTINGS:
            self.other[name].append(use)

    def _keep_call(self, node: cst.Call) -> None:
        self.calls.append(node)
        owner = self._class_of(node) if m.matches(node, _OWN_LOOKUP) else None
        if owner is not None:
            self.lookups[owner].append(self._use(node.args[1].value))
        elif m.matches(node, _LOOKUP):
            if _last_name(node.args[0].value) not in {"self", *SETTINGS}:
                self.other_lookups.append(self._use(node.args[1].value))
        elif m.matches(node, _PATH_LOOKUP):
            self.other_lookups.append(self._use(node.args[0].value))

    def _use(self, node: cst.CSTNode) -> Use:
        return Use(node, self.line(node))

    def _keep_words(self, node: cst.SimpleString | cst.FormattedStringText) -> None:
        is_docstring = isinstance(self._parents[node], cst.Expr)
        if is_docstring or re.search(r"\s", node.value):
            return
        for word in re.findall(r"\w+", _ESCAPE.sub(" ", node.value)):
            self.words.setdefault(word, Use(node, self.line(node)))

    def _keep_class(self, node: cst.ClassDef) -> None:
        self.classes.append(node)
        for statement in node.body.body:
            for bound in _bound_by(statement):
                self.own[node, bound.value].append(Use(bound, self.line(bound)))

    def _keep_assigned(self, node: cst.Assign) -> None:
        function = self.function_of(node)
        for each in node.targets:
            if isinstance(each.target, cst.Name) and isinstance(node.value, cst.Call):
                self.assigned_calls[function, each.target.value] = node.value

    def _keep_order(self, node: cst.IndentedBlock) -> None:
        for one, other in zip(node.body, node.body[1:], strict=False):
            if isinstance(one, cst.SimpleStatementLine):
                self._before[other] = one

    def line(self, node: cst.CSTNode) -> int:
        """Where a node begins, counted from 1."""
        return self.begin(node)[0]

    def begin(self, node: cst.CSTNode) -> tuple[int, int]:
        """The line and the column where a node begins."""
        start = self._positions[node].start
        return int(start.line), int(start.column)

    def before(self, statement: cst.CSTNode) -> cst.SimpleStatementLine | None:
        """The line right before a statement in its block, if it is no block itself."""
        return self._before.get(statement)

    def function_of(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function that a node stands in."""
        functions = (each for each in self.above(node) if isinstance(each, cst.FunctionDef))
        return next(functions, None)

    def _class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        classes = (each for each in self.above(node) if isinstance(each, cst.ClassDef))
        return next(classes, None)

    def means(self, node: cst.CSTNode, *names: str) -> bool:
        """Whether a node is one of these by its qualified name, and nothing else."""
        found = self._meanings.get(node, ())
        found = found() if callable(found) else found
        return bool(found) and all(each.name in names for each in found)

    def is_changed(self, node: cst.CSTNode) -> bool:
        """Whether a statement binds or deletes what a node names."""
        return self._contexts.get(node) in (ExpressionContext.STORE, ExpressionContext.DEL)

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node)

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node stands in, the nearest first."""
        while node in self._parents:
            node = self._parents[node]
            yield node


def found_in(node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """A node and what is below it, of these kinds."""
    yield from m.findall(node, m.MatchIfTrue(lambda each: isinstance(each, kinds)))


def dotted(node: cst.CSTNode) -> str | None:
    """A name, or names with dots between them; `None` of anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return None if before is None else f"{before}.{node.attr.value}"
    return None


def _last_name(node: cst.BaseExpression) -> str:
    return (dotted(node) or "").rpartition(".")[2]


def _bound_by(statement: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that a statement in the body of a class gives it."""
    if isinstance(statement, cst.FunctionDef):
        yield statement.name
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        targets: Iterable[cst.BaseExpression] = ()
        if isinstance(small, cst.AnnAssign):
            targets = [small.target]
        elif isinstance(small, cst.Assign):
            targets = [each.target for each in small.targets]
        yield from (each for each in targets if isinstance(each, cst.Name))


def _imported(module: cst.Module) -> Iterator[str]:
    for statement in module.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if not isinstance(small, (cst.Import, cst.ImportFrom)):
                continue
            for alias in small.names if not isinstance(small.names, cst.ImportStar) else ():
                name = alias.evaluated_alias or alias.evaluated_name
                yield name.partition(".")[0]
