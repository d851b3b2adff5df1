"""Evaluates statements: straight code is followed, branches make choices, loops make unknowns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from npulens.graphs.definitions import Definitions, nested_function
from npulens.graphs.frames import Closure, Frame, State
from npulens.graphs.invocations import Invocations
from npulens.graphs.nodes import OPAQUE, Graph, Node, is_identity
from npulens.graphs.operators import operator_named
from npulens.graphs.other_definitions import OtherDefinitions
from npulens.graphs.pairs import stored
from npulens.graphs.ranks import know_rank
from npulens.graphs.tensor_views import element, unpacked
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below

_LOOPS = ast.For | ast.AsyncFor | ast.While
WITHOUT_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})


class Statements(Invocations):
    """Statements in a frame; what a loop changes is unknown at its start and after it."""

    def __init__(self, graph: Graph, definitions: Definitions, elsewhere: OtherDefinitions) -> None:
        super().__init__(graph, definitions, elsewhere)
        self.result_names: dict[tuple[Node, ...], set[str]] = {}
        """The names that results of unknown functions are given, by function and arguments."""

    def block(self, body: Iterable[ast.stmt], frame: Frame) -> bool:
        """Run statements; whether what follows them is never reached."""
        for statement in body:
            if statement in frame.skipped:
                continue
            frame.statement = statement
            if frame.record is not None and statement in frame.watched:
                frame.record.names[statement] = dict(frame.names)
            if statement in frame.given:
                _bind_given(statement, frame)
            elif self._statement(statement, frame):
                return True
        return False

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        if isinstance(node, ast.Return):
            value = node.value and self.value(node.value, frame)
            frame.returned.append((frame.path, value or self.graph.constant(None)))
            return True
        if isinstance(node, (ast.Raise, ast.Continue, ast.Break)):
            self._read_children(node, frame)
            return True
        if isinstance(node, ast.If):
            return self._if(node, frame)
        if isinstance(node, ast.Assign):
            value = self.value(node.value, frame)
            for target in node.targets:
                self.assign(target, value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.value(node.value, frame), frame)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, frame)
        elif isinstance(node, ast.Expr):
            self._expression(node, frame)
        elif isinstance(node, _LOOPS):
            self._loop(node, frame)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self._with(node, frame)
        elif isinstance(node, ast.Try):
            return self._try(node, frame)
        elif isinstance(node, Function):
            self._nested(node, frame)
        else:
            self._other(node, frame)
        return False

    def assign(self, target: ast.expr, value: Node, frame: Frame) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            frame.bind(target.id, value)
            if value.operator == "apply":
                self.result_names.setdefault(value.operands, set()).add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(part, ast.Starred) for part in target.elts):
                value = self.unknown(target, (value,))
            elif value.operator == "shape":
                know_rank(value.operands[0], len(target.elts))
            value = self.mapped(value, len(target.elts), frame)
            value = unpacked(self.graph, value, len(target.elts))
            for index, part in enumerate(target.elts):
                part = part.value if isinstance(part, ast.Starred) else part
                self.assign(part, element(self.graph, value, index), frame)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, frame)
            frame.attributes[owner.serial, target.attr] = value
        elif isinstance(target, ast.Subscript):
            items = self.items(target.slice, frame)
            before = self.value(target.value, frame)
            complete = stored(self.graph, before, items, value)
            if not isinstance(target.value, ast.Name):
                return
            if complete is not None:
                frame.place(frame.statement, complete)
            after = complete or self.graph.node("stored", (before, *items, value))
            frame.bind(target.value.id, after, also=complete is None)

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        value = frame.given.get(node) or self.binary(
            node.op, self.read(node.target, frame), self.value(node.value, frame)
        )
        if isinstance(node.target, ast.Name):
            before = frame.names.get(node.target.id)
            frame.place(node, value)
            if not _is_of_number(value, before):
                self._changed_in_place(before, node, frame)
            frame.bind(node.target.id, value)
        else:
            frame.place(node, value)
            self.assign(node.target, value, frame)

    def _changed_in_place(self, before: Node | None, node: ast.AST, frame: Frame) -> None:
        """Other names of a tensor that was changed hold something else now."""
        for name, value in frame.names.items():
            if value is before:
                frame.names[name] = self.unknown(node, (value,))

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        value = self.value(node.value, frame)
        name, methods = _changes_in_place(node.value)
        if name is not None and name in frame.names:
            known = all(operator_named(method) is not None for method in methods)
            self._changed_in_place(frame.names[name], node, frame)
            frame.bind(name, value if known else self.unknown(node, (value,)), also=True)

    def _if(self, node: ast.If, frame: Frame) -> bool:
        condition = self.value(node.test, frame)
        decided = self.truth(condition)
        if decided is not None:
            return self.block(node.body if decided else node.orelse, frame)
        before, path = frame.state(), frame.path
        frame.path = (*path, condition)
        body_ends = self.block(node.body, frame)
        after_body = frame.state()
        frame.restore(before)
        frame.path = (*path, self.negation(condition))
        orelse_ends = self.block(node.orelse, frame)
        frame.path = path
        if orelse_ends:
            frame.restore(after_body)
            return body_ends
        if body_ends:
            return orelse_ends
        self._merge(condition, after_body, frame)
        return False

    def _merge(self, condition: Node, chosen: State, frame: Frame) -> None:
        """Names after an `if` represent a choice between the two branches."""
        for name in chosen.names.keys() | frame.names.keys():
            one, other = chosen.names.get(name), frame.names.get(name)
            if one is None or other is None:
                missing = self.unknown(frame.statement, ())
                frame.names[name] = self.select(condition, one or missing, other or missing)
            elif one is not other:
                frame.names[name] = self.select(condition, one, other)
        for key in chosen.attributes.keys() | frame.attributes.keys():
            attribute, otherwise = chosen.attributes.get(key), frame.attributes.get(key)
            if attribute is otherwise:
                continue
            is_constructor = frame.function.node.name == "__init__"
            if is_constructor and (attribute is None or otherwise is None):
                # A constructor that does not assign it leaves nothing there to be read.
                frame.attributes[key] = attribute or otherwise or self.unknown(frame.statement)
            elif attribute and otherwise and (is_identity(attribute) or is_identity(otherwise)):
                frame.attributes[key] = self.select(condition, attribute, otherwise)
            else:
                frame.attributes[key] = self.unknown(frame.statement)
        frame.merge_binders(chosen)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> None:
        changed = _stored_names(node)
        if not isinstance(node, ast.While):
            iterated = self.value(node.iter, frame)
            self._forget(changed, node, "in", frame)
            item = self.graph.node(OPAQUE, (iterated,), ("item", self.number_of(node)))
            self.assign(node.target, item, frame)
        else:
            self._forget(changed, node, "in", frame)
            self.value(node.test, frame)
        before, path = frame.state(), frame.path
        frame.path = (*path, self.graph.node(OPAQUE, (), ("loop", self.number_of(node))))
        self.block(node.body, frame)
        self.block(node.orelse, frame)
        frame.path = path
        frame.merge_binders(before)
        self._forget(changed, node, "after", frame)

    def _forget(self, names: Mapping[str, bool], node: ast.AST, when: str, frame: Frame) -> None:
        """Names that are bound anew are unknown; of others only the elements change."""
        for name, is_bound in names.items():
            value = self.graph.node(OPAQUE, (), (when, name, self.number_of(node)))
            before = frame.names.get(name)
            if before is not None and not is_bound:
                value = self.graph.node("stored", (before, value))
            frame.names[name] = value

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        stops_gradient = False
        for item in node.items:
            self.value(item.context_expr, frame)
            entered = item.context_expr
            if isinstance(entered, ast.Call):
                names = self.reexported_libraries(entered.func, frame)
                stops_gradient = stops_gradient or not WITHOUT_GRADIENT.isdisjoint(names)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self.unknown(item.optional_vars, ()), frame)
        ends = self.block(node.body, frame)
        if stops_gradient and frame.record is not None:
            frame.record.without_gradient.update(_statements(node.body))
        return ends

    def _try(self, node: ast.Try, frame: Frame) -> bool:
        before = frame.state()
        ends = self.block(node.body, frame)
        after_body = frame.state()
        handlers_end = True
        for handler in node.handlers:
            frame.restore(before)
            if handler.name:
                frame.names[handler.name] = self.unknown(handler, ())
            handlers_end = self.block(handler.body, frame) and handlers_end
        frame.restore(after_body)
        if not handlers_end:
            self._forget(_stored_names(node), node, "after", frame)
        self.block(node.orelse, frame)
        self.block(node.finalbody, frame)
        return ends and handlers_end

    def _nested(self, node: Function, frame: Frame) -> None:
        frame.capture(node)
        if frame.record is not None:
            frame.record.nested.add(node.name)
        value = self.unknown(node, ())
        self.nested[value.serial] = Closure(nested_function(node, frame.function), frame)
        frame.bind(node.name, value)

    def _other(self, node: ast.stmt, frame: Frame) -> None:
        """Statements that are not looked into: what they read and store is noted."""
        if isinstance(node, (ast.ClassDef, ast.Match)):
            frame.capture(node)
            self._forget(_stored_names(node), node, "after", frame)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self._forget(dict.fromkeys(node.names, True), node, "after", frame)
        else:
            self._read_children(node, frame)

    def _read_children(self, node: ast.stmt, frame: Frame) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not isinstance(node, ast.Delete):
                self.value(child, frame)


def _is_of_number(value: Node, before: Node | None) -> bool:
    """Whether `kept += torch.rand(4, 1)` makes a tensor: one of fewer elements could not grow."""
    return value.operator == "add" and any(
        each.operator == "rand" for each in value.operands if each is not before
    )


def _bind_given(node: ast.stmt, frame: Frame) -> None:
    """The name in `x *= y` or `x[...] = y`, whose value is known."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
    name = target.value if isinstance(target, ast.Subscript) else target
    if isinstance(name, ast.Name):
        frame.bind(name.id, frame.given[node])


def _changes_in_place(node: ast.expr) -> tuple[str | None, list[str]]:
    """The name whose tensor `x.mul_(a).add_(b)` changes, and the methods that do."""
    methods: list[str] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        methods.append(node.func.attr)
        node = node.func.value
    changes = [method.endswith("_") and not method.startswith("_") for method in methods]
    is_changed = isinstance(node, ast.Name) and bool(changes) and all(changes)
    return node.id if is_changed and isinstance(node, ast.Name) else None, methods


def _stored_names(node: ast.AST) -> dict[str, bool]:
    """Names that a statement may bind anew or change in place, each with whether it binds it."""
    found: dict[str, bool] = {}
    for child in nodes_below(node):
        if isinstance(child, ast.Name):
            if not isinstance(child.ctx, ast.Load):
                found[child.id] = True
        elif isinstance(child, ast.Assign):
            for target in child.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    found.setdefault(target.value.id, False)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            name, _ = _changes_in_place(child)
            if name is not None:
                found.setdefault(name, False)
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    for statement in body:
        yield from (node for node in nodes_below(statement) if isinstance(node, ast.stmt))
