"""The symbolic shapes of all names of a module, and what its functions take and give.

An editor shows them. Nothing that `check` reports rests on them, so they are looked for when the
findings are out already; what was found of a function is kept while what it rests on is the same.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.segment import Segment, with_starts
from npulens.checks.segments.shape_answers import FunctionShapes, Hint, NamedShapes, says_a_size
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.evaluation.shape_frames import Session
from npulens.shapes.ranking.evaluation_prefilter import functions_of, is_host_code
from npulens.shapes.ranking.evaluations import evaluated
from npulens.shapes.ranking.hints import hints_of_names, is_own
from npulens.shapes.ranking.reporting import Reporter
from npulens.shapes.ranking.span_remapping import Places
from npulens.shapes.values.events import Recorder, depends
from npulens.shapes.values.shape_values import Items, Tensor, Value

_MOST_RESULTS = 4


def name_shapes(
    module: AnalysedModule,
    session: Session,
    reporter_of: Callable[[Segment], Reporter],
    places: Places,
) -> NamedShapes:
    """What all functions of a module that compute with tensors show.

    Args:
        module: The module.
        session: What evaluations share; each function has its own recorder.
        reporter_of: Knows where the nodes of a segment are.
        places: Where they are in the module.
    """
    found: list[NamedShapes] = []
    definitions = module.definitions.all
    live = {each.node for each in _functions(module)}
    for start, segment in with_starts(module.segments):
        shapes = segment.shapes
        functions = [
            each
            for each in functions_of(segment.parsed.body, definitions)
            if not is_host_code(each)
        ]
        known = shapes.named if module.interfaces.are(shapes.named_queried) else {}
        here: dict[ast.AST, tuple[NamedShapes, frozenset[ast.AST]]] = {}
        reporter = reporter_of(segment)
        with definitions.looked_up() as queried:
            queried.update(shapes.named_queried)
            for function in functions:
                kept = known.get(function.node)
                if kept is None or not kept[1] <= live:
                    kept = _of_function(function, session, reporter)
                here[function.node] = kept
            # Together, so that a key that cancels leaves no shapes without what they rest on.
            shapes.named, shapes.named_queried = here, module.interfaces.behind(functions)
        found += (places.moved(named, start) for named, _ in here.values())
    return NamedShapes(
        tuple(sorted(hint for each in found for hint in each.hints)),
        tuple(sorted(hint for each in found for hint in each.reads)),
        tuple(sorted(one for each in found for one in each.functions)),
    )


def _functions(module: AnalysedModule) -> Iterator[FunctionHere]:
    """The functions and methods of a module."""
    for segment in module.segments:
        yield from functions_of(segment.parsed.body, module.definitions.all)


def _of_function(
    function: FunctionHere, known: Session, reporter: Reporter
) -> tuple[NamedShapes, frozenset[ast.AST]]:
    """What one function shows, with the functions that this rests on."""
    session = replace(
        known,
        recorder=Recorder(notes_names=True, notes_reads=True),
        active=[],
        results={},
        visited=[],
        passed_arguments=[],
        calls=0,
        steps=0,
    )
    result = evaluated(function, session, {})
    recorder = session.recorder
    own = list(hints_of_names(function, recorder, reporter.placed))
    reads = []
    for node, read in recorder.reads.items():
        if is_own(read, function) and isinstance(read.value, Tensor):
            home, span = reporter.placed(node, read.function)
            shape = read.value.shape
            if not shape.is_unknown:
                reads.append(Hint(span, home, shape.described(), depends(read.value)))
    functions = []
    if function.node.name.isidentifier():
        takes = tuple(
            (name, value.shape.described())
            for name, value in recorder.parameters.items()
            if isinstance(value, Tensor)
        )
        gives = _described(result)
        if gives or takes:
            home, span = reporter.name(function)
            functions.append(FunctionShapes(span, home, takes, gives))
    named = NamedShapes(tuple(own), tuple(reads), tuple(functions))
    return named, frozenset(session.visited)


def _described(result: Value) -> str:
    """The shape of what is returned, in brackets those of several; empty if little is known."""
    parts: Sequence[Value] = [result]
    if isinstance(result, Items) and result.elements is not None:
        parts = result.elements[:_MOST_RESULTS]
    texts = [
        part.shape.described() if isinstance(part, Tensor) and not part.shape.is_unknown else "…"
        for part in parts
    ]
    if all(text == "…" or not says_a_size(text) for text in texts):
        return ""
    return texts[0] if parts == [result] else f"({', '.join(texts)})"
