"""The places of a script where an instrument puts lines."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.instrument_model import CannotInstrumentError
from npulens.syntax.bindings import Function
from npulens.text.lines import LineMap
from npulens.training.call_sites import Loop
from npulens.training.step_loops import StepLoop, own_exits

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


def in_steps(
    steps: Sequence[StepLoop], lines: LineMap, begin: Sequence[str], end: Sequence[str]
) -> Iterator[Insertion]:
    """At the begin and the end of each step, however it ends.

    Raises:
        CannotInstrumentError: A step shares a line with its loop or with other code.
    """
    for step in steps:
        body = step.loop.body
        if body[0].lineno == step.loop.lineno:
            raise CannotInstrumentError(step.loop.lineno, "instrument.loop-in-one-line")
        if begin:
            yield before(lines, body[0], begin, order=3)
        if not end:
            continue
        for exit_ in own_exits(step.loop):
            yield before(lines, exit_, end, order=3)
        if not isinstance(body[-1], (ast.Continue, ast.Break, ast.Return)):
            yield behind(lines, body[-1], end, order=1)
