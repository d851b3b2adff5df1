"""What an editor can show of shapes besides findings, as plain data."""

import ast
from collections.abc import Callable, Iterator, Sequence

from npulens.checks.segments.shape_answers import Hint
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.values.events import Assigned, Event, Recorder, depends
from npulens.shapes.values.shape_values import Tensor
from npulens.text.spans import Span

Placed = Callable[[ast.AST, FunctionHere], tuple[str, Span]]
"""The function at the top of the module that a node is in, and where there."""


def hint_of_function(home: str, name: Span, events: Sequence[Event]) -> Hint:
    """How many dynamic shapes and synchronizations the statements of a function hold."""
    shapes = sum(event.is_shape for event in events)
    return Hint(name, home, "", bool(shapes), shapes, sum(event.synchronizes for event in events))


def is_own(assigned: Assigned, function: FunctionHere) -> bool:
    """Whether a name is one of a function, or of those that are defined in it."""
    return function.node in [scope.node for scope in assigned.function.scopes]


def hints_of_names(function: FunctionHere, recorder: Recorder, placed: Placed) -> Iterator[Hint]:
    """The shapes of the names that were assigned in a function, and where it was evaluated.

    What a function that it calls assigns has another shape in another call; it counts where it
    depends on data.
    """
    events = recorder.events
    for node, assigned in recorder.assigned.items():
        value = assigned.value
        if not (is_own(assigned, function) or depends(value)):
            continue
        if isinstance(value, Tensor) and not value.shape.is_unknown:
            home, span = placed(node, assigned.function)
            known = [source for source in value.sources if source in events]
            places = sorted(placed(source, events[source].function) for source in known)
            shape = value.shape.described()
            yield Hint(span, home, shape, depends(value), sources=tuple(places))
