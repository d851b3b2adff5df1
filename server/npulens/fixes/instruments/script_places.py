"""The places of a script where an instrument puts lines."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.instruments.earlier_passes import earlier_passes
from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.region_start import RegionStart
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.training.call_sites import Loop
from npulens.training.made_optimizers import MadeOptimizer
from npulens.training.step_blocks import first_that_trains, is_pure, losses_of, step_block
from npulens.training.step_ends import closing, step_ends
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
    training: TrainingScript, lines: LineMap, first: Sequence[str], last: Sequence[str]
) -> Iterator[Insertion]:
    """Before and behind the outermost loops of the training, and before what returns from them.

    A loop of its own that may only evaluate gets them under its condition.
    """
    steps = {_outermost(step): step for step in training.steps} if first or last else {}
    for loop, step in steps.items():
        condition = step_block(step, training).condition if step.loop is loop else ""
        if first:
            yield before(lines, loop, _under(condition, first), order=2)
        if last:
            yield behind(lines, loop, _under(condition, last), order=2)
            for exit_ in own_exits(loop):
                if isinstance(exit_, ast.Return):
                    yield before_exit(lines, loop, exit_, _under(condition, last), order=4)


def before_exit(
    lines: LineMap, loop: Loop | Function, exit_: ast.stmt, inserted: Sequence[str], order: int
) -> Insertion:
    """Lines before a statement that leaves a turn; under the condition of `if done: continue`."""
    for node in nodes_below(loop):
        is_around = isinstance(node, ast.If) and node.body == [exit_] and not node.orelse
        if isinstance(node, ast.If) and is_around and node.lineno == exit_.lineno:
            # Before `elif`, a condition of ours would take its place.
            if is_pure(node.test) and lines.text.startswith("if", lines.span(node).start):
                guarded = _under(ast.unparse(node.test), inserted)
                return before(lines, node, guarded, order=order)
            break
    return before(lines, exit_, inserted, order=order)


def _under(condition: str, inserted: Sequence[str]) -> Sequence[str]:
    """Lines under a condition, if there is one."""
    if not condition or not inserted:
        return inserted
    return (f"if {condition}:", *(f"    {line}" for line in inserted))


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
        and _is_bound(each, loop)
        for each in made
    )
    return loop if is_behind else None


def _is_bound(made: MadeOptimizer, loop: Loop) -> bool:
    """Whether the name of an optimizer is bound at a loop: made always, or read there."""
    name = made.optimizer
    guards = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try)
    if not isinstance(name, ast.Name) or not any(
        isinstance(s, guards) for s in made.site.statements
    ):
        return True
    return any(isinstance(n, ast.Name) and n.id == name.id for n in nodes_below(loop))


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
        if step.loop.body[0].lineno == step.loop.lineno:
            raise UnclearError(step.loop.lineno, "instrument.loop-in-one-line")
        if counted:
            for end in step_ends(step, training.sites):
                condition = _of_accumulation(step)
                yield behind(lines, end, _under(condition, counted), order=1)
        if begin or closed:
            yield from _in_turn(step, training, lines, begin, closed)


def _of_accumulation(step: StepLoop) -> str:
    """What tells whether a turn updates, in `with accelerator.accumulate(model):` or behind it."""
    for update in step.updates:
        for statement in update.site.statements:
            if not isinstance(statement, ast.With):
                continue
            for item in statement.items:
                called = getattr(item.context_expr, "func", None)
                if isinstance(called, ast.Attribute) and called.attr == "accumulate":
                    return f"{ast.unparse(called.value)}.sync_gradients"
    return ""


def _in_turn(
    step: StepLoop,
    training: TrainingScript,
    lines: LineMap,
    begin: Sequence[str],
    closed: Sequence[str],
) -> Iterator[Insertion]:
    """At the begin of what a turn does to train, behind its updates, and where it ends early."""
    region_start = RegionStart(training.sites, training.sites)
    trimmed = region_start.trimmed
    losses = [*map(trimmed, losses_of(step, training))]
    earlier = earlier_passes(losses, training.sites, region_start, training.barriers)
    passes = [each.statements[0] for each in earlier]
    block = step_block(step, training, passes)
    begin, closed = _under(block.condition, begin), _under(block.condition, closed)
    start = first_that_trains(step, block.body, training, trimmed, passes)
    if begin:
        yield before(lines, start, begin, order=3)
    if closed:
        last = closing(step, training.sites, block.body)
        yield behind(lines, last, closed, order=1)
        first = start.lineno
        for exit_ in own_exits(step.loop):
            if first <= exit_.lineno <= (last.end_lineno or last.lineno):
                yield before_exit(lines, step.loop, exit_, closed, order=3)
