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


def hints_of_names(recorder: Recorder, placed: Placed) -> Iterator[Hint]:
    """The shapes of the names that were assigned."""
    for node, assigned in recorder.assigned.items():
        if _is_reported(assigned):
            home, span = placed(node, assigned.function)
            yield _hint(assigned, home, span, recorder, placed)


def _is_reported(assigned: Assigned) -> bool:
    value = assigned.value
    return isinstance(value, Tensor) and not value.on_host and not value.shape.is_unknown


def _hint(assigned: Assigned, home: str, span: Span, recorder: Recorder, placed: Placed) -> Hint:
    value = assigned.value
    assert isinstance(value, Tensor)
    places = []
    for source in value.sources:
        event = recorder.events.get(source)
        if event is not None:
            places.append(placed(source, event.function))
    return Hint(span, home, value.shape.described(), depends(value), sources=tuple(sorted(places)))
