"""What is found while functions are evaluated on shapes."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from npulens.catalog.model import LocalizedText
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.values.shape_values import Tensor, Value, either
from npulens.shapes.values.symbolic_dims import Sources

_MOST_CONSUMERS = 8


@dataclass(slots=True, eq=False)
class Event:
    """A place where a shape comes to depend on data, or where the host waits.

    Attributes:
        rule: The name of the rule that it breaks.
        node: The place.
        function: The function that it is in.
        cost: How much it hurts in a step, from 0 to 100.
        synchronizes: The host waits for the device here.
        is_shape: A shape depends on data from here on.
        advice: What is better.
        is_whole: The mask has as many dimensions as what it selects from.
        loops: How many loops of the function are around it.
        is_rare: It is reached every so many steps, or in evaluation only.
        is_elsewhere: It is a call, and the place is in the function of another module.
        is_sure: It is a tensor for certain that this happens to.
        used: Where what comes of it is worked on.
    """

    rule: str
    node: ast.AST
    function: FunctionHere
    cost: int
    synchronizes: bool
    is_shape: bool
    advice: LocalizedText
    is_whole: bool = False
    loops: int = 0
    is_rare: bool = False
    is_elsewhere: bool = False
    is_sure: bool = True
    used: dict[ast.AST, FunctionHere] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assigned:
    """A name or attribute with the value that it has there."""

    node: ast.expr
    function: FunctionHere
    value: Value


def copy_of(event: Event) -> Event:
    """The same event, to which other consumers can come."""
    return replace(event, used=dict(event.used))


class Recorder:
    """Collects what evaluations find, each place once.

    Attributes:
        events: By the node.
        assigned: By the target.
        reads: Names and attributes where they are read, if that is noted.
        parameters: Those of the function that show their dimensions.
        notes_names: Whether names are noted.
        notes_reads: Whether it is noted where they are read.
        log: All that was noted, in order, also what was known before.
    """

    def __init__(self, *, notes_names: bool, notes_reads: bool = False) -> None:
        self.notes_names = notes_names
        self.notes_reads = notes_reads
        self.reads: dict[ast.expr, Assigned] = {}
        self.parameters: dict[str, Value] = {}
        self.log: list[Event] = []
        self.events: dict[ast.AST, Event] = {}
        self.assigned: dict[ast.Name, Assigned] = {}

    def add(self, event: Event) -> None:
        """Note an event; the first at a place stays, unless only the later one is sure."""
        before = self.events.get(event.node)
        if before is None or (event.is_sure and not before.is_sure):
            if before is not None:
                event.used.update(before.used)
            self.events[event.node] = event
        self.log.append(self.events[event.node])

    def add_copy(self, event: Event) -> None:
        """Note an event that others have noted, too."""
        before = self.events.get(event.node)
        self.add(copy_of(event) if before is None or event.is_sure > before.is_sure else before)

    def use(self, sources: Iterable[ast.AST], node: ast.AST, function: FunctionHere) -> None:
        """Note that a node works on what depends on some sources."""
        for source in sources:
            event = self.events.get(source)
            if event is not None and node is not source and len(event.used) < _MOST_CONSUMERS:
                event.used[node] = function

    def assign(self, node: ast.Name, function: FunctionHere, value: Value) -> None:
        """Note a value; that of a later turn of a loop or of another call does not undo it."""
        if not self.notes_names:
            return
        before = self.assigned.get(node)
        if before is not None and isinstance(before.value, Tensor) and isinstance(value, Tensor):
            if depends(before.value):
                return
            if not depends(value):
                value = either(before.value, value)
        self.assigned[node] = Assigned(node, function, value)

    def read(self, node: ast.expr, function: FunctionHere, value: Value) -> None:
        """Note what a name or attribute is where it is read, in all turns of a loop."""
        before = self.reads.get(node)
        if before is not None:
            value = either(before.value, value)
        self.reads[node] = Assigned(node, function, value)


def depends(value: Value) -> bool:
    """Whether the shape of a value depends on data."""
    sources: Sources = getattr(value, "sources", frozenset())
    return bool(sources)
