"""What an editor can show of shapes besides findings, as plain data."""

import ast
from collections.abc import Iterator, Sequence

from npulens.checks.pieces import Hint
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.events import Event, Recorder, depends
from npulens.shapes.values import Tensor
from npulens.text.lines import LineMap
from npulens.text.spans import Span


def hints_of(
    function: FunctionHere, events: Sequence[Event], recorder: Recorder, lines: LineMap
) -> Iterator[Hint]:
    """The hints of a function that holds a hotspot.

    Args:
        function: The function.
        events: What was found in its own statements.
        recorder: What was assigned.
        lines: The text that it stands in.
    """
    if events and function.node.name.isidentifier():
        name = _name_span(function, lines)
        shapes = sum(event.is_shape for event in events)
        yield Hint(name, "", bool(shapes), shapes, sum(event.waits for event in events))
    inside = _inner_nodes(function)
    for node, assigned in recorder.assigned.items():
        value = assigned.value
        if assigned.function.node is not function.node or not isinstance(value, Tensor):
            continue
        if value.shape.is_unknown or value.on_host:
            continue
        sources = [source for source in value.sources if source in inside]
        places = sorted(_span(source, lines) for source in sources)
        yield Hint(
            _span(node, lines), value.shape.described(), depends(value), sources=tuple(places)
        )


def _inner_nodes(function: FunctionHere) -> set[ast.AST]:
    return set(ast.walk(function.node))


def _span(node: ast.AST, lines: LineMap) -> Span:
    assert isinstance(node, ast.expr | ast.stmt)
    start = lines.offset(node.lineno, node.col_offset)
    return Span(start, lines.offset(node.end_lineno or 0, node.end_col_offset or 0))


def _name_span(function: FunctionHere, lines: LineMap) -> Span:
    node = function.node
    start = lines.offset(node.lineno, node.col_offset)
    at = lines.text.index(node.name, start)
    return Span(at, at + len(node.name))
