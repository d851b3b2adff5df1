"""Evaluates the functions of a segment, but for those of which what was found holds still."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from npulens.checks.segments.shape_answers import Evaluation
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.evaluation.callers import arguments_from_host
from npulens.shapes.evaluation.shape_frames import PassedArguments, Session
from npulens.shapes.evaluation.shape_statements import evaluate_kept, recalled
from npulens.shapes.evaluation.tensor_evidence import parameters
from npulens.shapes.ranking.reporting import Reporter
from npulens.shapes.values.events import Recorder
from npulens.shapes.values.shape_values import UNKNOWN, Value


def evaluations(
    functions: Sequence[FunctionHere],
    session: Session,
    reporter: Reporter,
    known: Mapping[ast.AST, Evaluation],
    live: Mapping[ast.AST, object],
) -> dict[ast.AST, Evaluation]:
    """What is found in some functions of a segment, by their nodes.

    What is known from before holds no longer if it rests on a function that is not live.
    """
    found: dict[ast.AST, Evaluation] = {}
    for function in functions:
        before = known.get(function.node)
        if before is None or not before.rests_on <= live.keys():
            before = _evaluation(function, session, reporter, {})
        found[function.node] = before
    passed: dict[ast.AST, dict[ast.Call, Mapping[str, Value]]] = {}
    for evaluation in found.values():
        for each in evaluation.passed_arguments:
            assert isinstance(each, PassedArguments)
            passed.setdefault(each.method, {})[each.call] = each.values
    for function in functions:
        evaluation = found[function.node]
        calls = passed.get(function.node, {}) if evaluation.has_events else {}
        from_host = arguments_from_host(function, calls)
        if from_host != evaluation.from_host:
            again = _evaluation(function, session, reporter, from_host)
            # What it passes on counts as it is for any arguments.
            rests_on, given = evaluation.rests_on | again.rests_on, evaluation.passed_arguments
            again = replace(again, rests_on=rests_on, passed_arguments=given)
            found[function.node] = replace(again, has_events=True)
    return found


def _evaluation(
    function: FunctionHere, known: Session, reporter: Reporter, from_host: Mapping[str, Value]
) -> Evaluation:
    """What is found in a function, of whose parameters some are known to be on the host."""
    session = replace(
        known,
        recorder=Recorder(notes_names=known.recorder.notes_names),
        active=[],
        results={},
        visited=[],
        passed_arguments=[],
        entered=set(),
        calls=0,
        steps=0,
    )
    evaluated(function, session, from_host)
    hotspots, hints = reporter.report(function, session.recorder)
    return Evaluation(
        hotspots,
        hints,
        frozenset(session.visited),
        tuple(session.passed_arguments),
        bool(session.recorder.events),
        from_host,
    )


def evaluated(
    function: FunctionHere,
    session: Session,
    known: Mapping[str, Value],
    given: frozenset[str] = frozenset(),
) -> Value:
    """What a function returns, where it is known what some of its parameters hold.

    The session has the rest of what comes of it; `given` are optional parameters that the caller
    is taken to give.
    """
    names = dict(parameters(function.node, function.node.name == "forward"))
    if function.receiver is not None:
        names[function.receiver] = UNKNOWN
    names.update(known)
    try:
        # Which names hold what is not remembered, so hints need an evaluation of their own.
        if not session.recorder.notes_names:
            before = recalled(session, function, names, given)
            if before is not None:
                return before.value
        return evaluate_kept(session, function, names, given)
    except RecursionError:
        session.recorder = Recorder(notes_names=session.recorder.notes_names)
        return UNKNOWN
