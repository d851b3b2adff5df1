"""Evaluates functions on symbols: what each of their expressions computes, as a node."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from npulens.graphs.definitions import (
    ClassHere,
    Definitions,
    FunctionHere,
    attributes_without_value,
    stored_attributes,
)
from npulens.graphs.frames import Evaluated, Frame, TooLargeError
from npulens.graphs.graph_statements import WITHOUT_GRADIENT, Statements
from npulens.graphs.nodes import ATTRIBUTE, INPUT, Graph, Node
from npulens.graphs.other_definitions import NOTHING_ELSEWHERE, OtherDefinitions
from npulens.syntax.bindings import with_defaults

_NOTHING_CONFIGURED: Mapping[str, str] = MappingProxyType({})
_NOTHING_GIVEN: Mapping[ast.expr | ast.stmt, Node] = MappingProxyType({})


class Evaluator(Statements):
    """Evaluates the functions of one file; all of them share one graph.

    Straight code is followed; where an `if` decides, a name becomes a choice; what a loop changes
    is unknown at its start and after it. Unknown things are leaves of their own.

    Args:
        definitions: The functions and classes of the file.
        configured: What configurations say by default, by their attributes.
        elsewhere: What other modules define.
    """

    def __init__(
        self,
        definitions: Definitions,
        configured: Mapping[str, str] = _NOTHING_CONFIGURED,
        elsewhere: OtherDefinitions = NOTHING_ELSEWHERE,
    ) -> None:
        super().__init__(Graph(), definitions, elsewhere)
        self._configured = configured
        self.inlined: set[ast.AST] = set()
        self.visited: set[ast.AST] = set()
        """Functions that were requested since it was emptied, also those not looked into."""
        self._initialized: dict[ClassHere, tuple[dict[str, Node], set[ast.AST]]] = {}

    def evaluate(
        self,
        function: FunctionHere,
        skipped: frozenset[ast.stmt] = frozenset(),
        watched: frozenset[ast.stmt] = frozenset(),
        given: Mapping[ast.expr | ast.stmt, Node] = _NOTHING_GIVEN,
    ) -> Evaluated | None:
        """Every expression of a function; `None` for one that is too large.

        Args:
            function: The function.
            skipped: Statements taken as if they were not there.
            watched: Statements before which the values of all names are wanted.
            given: Values of expressions and augmented assignments, which are not looked into.
        """
        record = Evaluated(function)
        frame = Frame(function, record, skipped=skipped, watched=watched, given=given)
        arguments = function.node.args
        for parameter in (*function.parameters, arguments.vararg, arguments.kwarg):
            if parameter is not None:
                frame.names[parameter.arg] = self.graph.node(INPUT, (), parameter.arg)
        self.focus(function)
        self.steps, self.inlined = 0, record.inlined
        try:
            self.block(function.node.body, frame)
        except (TooLargeError, RecursionError):
            return None
        if not function.decorators.isdisjoint(WITHOUT_GRADIENT):
            record.without_gradient.update(statement for _, _, statement in record.places)
        return record

    def focus(self, function: FunctionHere) -> None:
        """Answer questions about `self` for this function from now on."""
        self.owner = function.owner
        receiver = function.receiver
        self.receiver = None if receiver is None else self.graph.node(INPUT, (), receiver)

    def result(self, function: FunctionHere) -> Node | None:
        """What a function returns for its own parameters, `None` if that is not known."""
        names = {each.arg: self.graph.node(INPUT, (), each.arg) for each in function.parameters}
        self.owner = self.receiver = None
        try:
            return self.returned(function, names, Frame(function, None))
        except (TooLargeError, RecursionError):
            return None

    def initialized(self, owner: ClassHere) -> dict[str, Node]:
        """What constructors of a class assign to attributes of `self`, and no other method does."""
        known = self._initialized.get(owner)
        if known is None:
            self._initialized[owner] = {}, set()  # while it is being found out
            outer, self.visited = self.visited, set()
            known = self._constructed_attributes(owner), self.visited
            self._initialized[owner], self.visited = known, outer
        self.visited |= known[1]
        return known[0]

    def default(self, value: Node) -> Node | None:
        """The default of a constructor's parameter, or what configurations say by default."""
        if value.operator == ATTRIBUTE:
            named = self._configured.get(str(value.label)) if _is_configured(value) else None
            return None if named is None else self.graph.constant(named)
        prefix, _, name = str(value.label).partition(".")
        if value.operator != INPUT or prefix != "__init__" or self.owner is None:
            return None
        for current in self.elsewhere.lineage(self.definitions, self.owner):
            constructor = current.methods.get("__init__")
            if constructor is None:
                continue
            for parameter, default in with_defaults(constructor.node.args):
                if parameter.arg == name:
                    return self.value(default, Frame(constructor, None))
        return None

    def _constructed_attributes(self, owner: ClassHere) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for current in reversed(list(self.elsewhere.lineage(self.definitions, owner))):
            constructor = current.methods.get("__init__")
            if constructor is not None:
                found.update(self._assigned_to_self(constructor))
                for attribute in attributes_without_value(constructor.node):
                    if attribute in found and found[attribute].operator == "parameter":
                        del found[attribute]  # or it is `None`, as another arm registers it
            for name, method in current.methods.items():
                if name != "__init__":
                    for attribute in stored_attributes(method):
                        found.pop(attribute, None)
        return found

    def _assigned_to_self(self, constructor: FunctionHere) -> dict[str, Node]:
        frame = Frame(constructor, None)
        for parameter in constructor.parameters:
            label = f"{constructor.node.name}.{parameter.arg}"
            frame.names[parameter.arg] = self.graph.node(INPUT, (), label)
        receiver = constructor.receiver
        if receiver is None or self.receiver is None:
            return {}
        frame.names[receiver] = self.receiver
        self.block(constructor.node.body, frame)
        serial = self.receiver.serial
        return {name: node for (of, name), node in frame.attributes.items() if of == serial}

    def returned(self, function: FunctionHere, names: dict[str, Node], frame: Frame) -> Node | None:
        """What a call of a function of this file gives, `None` if that is not known."""
        if not function.place:
            self.inlined.add(function.node)
        inner = Frame(function, None, depth=frame.depth + 1)
        inner.names = names
        inner.attributes = frame.attributes if function.receiver is not None else {}
        ends = self.block(function.node.body, inner)
        results = inner.returned
        if not ends:
            results = [*results, ((), self.graph.constant(None))]
        if not results:
            return None  # it raises whatever it is called with
        *early, (_, result) = results
        for path, value in reversed(early):
            if len(path) != 1:
                return None
            result = self.select(path[0], value, result)
        return result


def _is_configured(attribute: Node) -> bool:
    """Whether something is an attribute of a configuration: `config.hidden_act`."""
    return any("config" in str(owner.label).lower() for owner in attribute.operands)
