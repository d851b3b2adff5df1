"""The places of a script where an instrument puts lines."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.text.lines import LineMap
from npulens.training.call_sites import Loop
from npulens.training.made_optimizers import MadeOptimizer
from npulens.training.step_ends import step_end
from npulens.training.step_loops import StepLoop, own_exits
from npulens.training.training_script import TrainingScript

_NO_CODE = (ast.Import, ast.ImportFrom, ast.If, ast.Try, ast.With)


def at_top(tree: ast.Module, lines: LineMap, text: Sequence[str]) -> Insertion:
    """Before all statements but the docstring and imports from `__future__`."""
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_docstring and not is_future:
            return before(lines, node, text, order=0)
    return behind(lines, tree.body[-1], text)


def behind_imports(tree: ast.Module, lines: LineMap, text: Sequence[str]) -> Insertion:
    """Behind the last import of the module before its first function, class or loop."""
    last: ast.stmt | None = None
    for node in tree.body:
        if isinstance(node, (Function, ast.ClassDef, Loop)):
            break
        if _imports(node):
            last = node
    if last is None:
        top = at_top(tree, lines, text)
        return top._replace(order=1)
    return behind(lines, last, text, order=1)


def _imports(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if not isinstance(node, (ast.If, ast.Try, ast.With)):
        return False
    return all(isinstance(each, (*_NO_CODE, ast.Assign, ast.Pass)) for each in node.body) and any(
        _imports(each) for each in node.body
    )


def around_loops(
    steps: Sequence[StepLoop], lines: LineMap, first: Sequence[str], last: Sequence[str]
) -> Iterator[Insertion]:
    """Before and behind the outermost loops of the training, and before what returns from them."""
    for loop in dict.fromkeys(_outermost(step) for step in steps):
        if first:
            yield before(lines, loop, first, order=2)
        if last:
            yield behind(lines, loop, last, order=2)
            for exit_ in own_exits(loop):
                if isinstance(exit_, ast.Return):
                    yield before(lines, exit_, last, order=4)


def _outermost(step: StepLoop) -> Loop:
    return step.ways[0].loops[0]


def loop_behind(steps: Sequence[StepLoop], made: Sequence[MadeOptimizer]) -> Loop | None:
    """The outermost loop that trains, if it is behind what makes the optimizer, in its function.

    Until there the model may be moved to its device, cast or wrapped.
    """
    if len(steps) != 1 or any(isinstance(each.optimizer, ast.Attribute) for each in made):
        return None
    loop = _outermost(steps[0])
    function = next(s for s in steps[0].ways[0].sites if loop in s.loops).function
    is_behind = all(
        each.site.function is function
        and not each.site.loops
        and each.statement.lineno < loop.lineno
        for each in made
    )
    return loop if is_behind else None


def in_steps(
    training: TrainingScript,
    lines: LineMap,
    begin: Sequence[str],
    counted: Sequence[str],
    closed: Sequence[str],
) -> Iterator[Insertion]:
    """At the begin of each turn, behind the updates of a step, and at the end of each turn.

    Raises:
        UnclearError: A step shares a line with its loop or with other code.
    """
    for step in training.steps:
        body = step.loop.body
        if body[0].lineno == step.loop.lineno:
            raise UnclearError(step.loop.lineno, "instrument.loop-in-one-line")
        if begin:
            yield before(lines, body[0], begin, order=3)
        end = step_end(step, training.sites)
        if counted:
            yield behind(lines, end.counted, counted, order=1)
        if closed:
            yield behind(lines, end.closed, closed, order=1)
            for exit_ in own_exits(step.loop):
                if exit_.lineno <= (end.closed.end_lineno or end.closed.lineno):
                    yield before(lines, exit_, closed, order=3)
