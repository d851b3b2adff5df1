"""Libraries whose import may fail, and that the code cannot do without all the same.

`assert flash_attn is not None` behind such an import says so, and so does a function whose only way
is a call of what was imported, where nobody checks whether it is there.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import partial

from npulens.checks.intent.guarded_imports import GuardedImport
from npulens.syntax.bindings import Function, parameters_of
from npulens.syntax.values import is_none, root_name
from npulens.syntax.walking import names_in, nodes_below
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.optional_names import without

_Definition = Function | ast.ClassDef
_Condition = (ast.If, ast.IfExp)
_DEEPEST = 6
"""So many functions, each called by the next, are looked at."""
_MOST_USES = 50
"""What is named more often is taken for something that is chosen."""


class Needs:
    """What a module needs of libraries whose import may fail.

    `owners` has the parent of each of its nodes.
    """

    def __init__(self, nodes: Iterable[ast.AST], owners: Mapping[ast.AST, ast.AST]) -> None:
        self._owners = owners
        self._loads: dict[str, list[ast.expr]] = {}
        self._refusals: list[tuple[ast.stmt, ast.expr, bool]] = []
        self._constants: dict[str, list[ast.expr]] = {}
        for node in nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._loads.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            self._loads.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Assert):
            self._refusals.append((node, node.test, False))
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            self._refusals.append((node, node.test, True))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self._constants.setdefault(node.targets[0].id, []).append(node.value)

    def place(self, guarded: GuardedImport) -> ast.AST | None:
        """Where a module needs what an import brings, `None` if it does without."""
        for statement, test, refuses in self._refusals:
            if guarded.marks.isdisjoint(names_in(test)):
                continue
            found = without(guarded.marks, test, partial(self._by_default, at=statement))
            if found.holds is refuses and self._is_reached(statement):
                return statement
        others = guarded.others.values()
        nothing = [
            other for other in others if isinstance(other, ast.Assign) and is_none(other.value)
        ]
        if not guarded.flags.isdisjoint(self._loads) or len(nothing) < len(others):
            return None  # something takes their place, or a flag is read that says they are there
        return self._only_way(guarded)

    def _only_way(self, guarded: GuardedImport) -> ast.AST | None:
        """An unchecked call of what an import brings."""
        uses = [
            use
            for name in guarded.names
            for use in self._loads.get(name, ())
            if isinstance(use, ast.Name) and not self._is_in(use, guarded.guard)
        ]
        calls = [self._call_of(use) for use in uses]
        if not calls or len(calls) > _MOST_USES or any(call is None for call in calls):
            return None
        return next((call for call in calls if call is not None and self._is_reached(call)), None)

    def _call_of(self, use: ast.expr) -> ast.Call | None:
        """The call of a name, or of what is in it; `None` if it is used in another way."""
        node: ast.AST = use
        while isinstance(owner := self._owners.get(node), ast.Attribute):
            node = owner
        if isinstance(owner, ast.Call) and owner.func is node:
            return owner
        return None

    def _is_in(self, node: ast.AST, outer: ast.AST) -> bool:
        while node in self._owners:
            node = self._owners[node]
            if node is outer:
                return True
        return False

    def _is_reached(self, node: ast.AST, depth: int = 0) -> bool:
        """Whether a program comes to a place, as far as it chooses nothing else by default."""
        while (owner := self._owners.get(node)) is not None:
            if isinstance(owner, _Condition) and node is not owner.test:
                body = owner.body if isinstance(owner.body, list) else [owner.body]
                by_default = joined(owner.test, partial(self._by_default, at=owner))
                if by_default.holds is not (node in body):
                    return False
            elif isinstance(owner, (ast.Try, ast.Dict, ast.List, ast.BoolOp)):
                return False  # it may fail, or is one of several
            elif isinstance(owner, _Definition) and node in owner.body:
                return self._is_used(owner, depth)
            node = owner
        return True

    def _is_used(self, definition: _Definition, depth: int) -> bool:
        """Whether a function or class is used where nothing else is by default."""
        owner = self._owners.get(definition)
        is_hook = isinstance(owner, ast.ClassDef) and (
            definition.name.startswith("__") or definition.name == "forward"
        )
        if is_hook or depth > _DEEPEST:
            return self._is_reached(definition, depth + 1)
        uses = [u for u in self._loads.get(definition.name, ()) if not self._is_in(u, definition)]
        if not uses:
            return self._is_reached(definition, depth + 1)  # whoever takes it from here needs it
        return len(uses) <= _MOST_USES and any(self._is_reached(u, depth + 1) for u in uses)

    def _by_default(self, test: ast.expr, at: ast.AST) -> Answer:
        """What a part of a condition comes to if nobody chooses."""
        if isinstance(test, ast.Constant):
            return Answer(bool(test.value))
        if isinstance(test, ast.Name):
            given = self._given(test.id, at)
            return UNKNOWN if given is None else Answer(bool(given.value))
        if isinstance(test, ast.Attribute) and root_name(test) == "self":
            return self._attribute(test.attr, at)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(test.left, test.ops[0], test.comparators[0], at)
        return UNKNOWN

    def _compared(
        self, left: ast.expr, relation: ast.cmpop, right: ast.expr, at: ast.AST
    ) -> Answer:
        """`mode == "flash"`, where `mode` has a default."""
        given = self._given(left.id, at) if isinstance(left, ast.Name) else None
        if given is None or not isinstance(right, ast.Constant):
            return UNKNOWN
        if isinstance(relation, (ast.Eq, ast.NotEq)):
            return Answer((given.value == right.value) is isinstance(relation, ast.Eq))
        return UNKNOWN

    def _given(self, name: str, at: ast.AST) -> ast.Constant | None:
        """The default of a parameter of a function around, or a constant of the module."""
        function = self._around(at, Function)
        while function is not None:
            assert isinstance(function, Function)
            for parameter, value in parameters_of(function.args):
                if parameter.arg == name:
                    return value if isinstance(value, ast.Constant) else None
            function = self._around(function, Function)
        values = self._constants.get(name, [])
        known = values[0] if len(values) == 1 else None
        return known if isinstance(known, ast.Constant) else None

    def _attribute(self, name: str, at: ast.AST) -> Answer:
        """What `self.name` is given in its class, if only one value is."""
        owner = self._around(at, ast.ClassDef)
        values = [
            (part.value, part)
            for part in (nodes_below(owner) if owner is not None else ())
            if isinstance(part, ast.Assign)
            and any(isinstance(t, ast.Attribute) and t.attr == name for t in part.targets)
        ]
        if len(values) != 1:
            return UNKNOWN
        value, place = values[0]
        if isinstance(value, ast.Attribute):
            return UNKNOWN
        return joined(value, partial(self._by_default, at=place))

    def _around(self, node: ast.AST, kind: "type | object") -> ast.AST | None:
        while node in self._owners:
            node = self._owners[node]
            if isinstance(node, kind):  # type: ignore[arg-type]
                return node
        return None
