"""The places of a function that makes a step, where the loop around it is in another file."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.region_start import RegionStart
from npulens.fixes.instruments.script_places import before_exit
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.training.call_sites import Site
from npulens.training.loss_regions import UnclearLossError, loss_region
from npulens.training.step_ends import with_what_belongs
from npulens.training.step_loops import own_exits
from npulens.training.training_script import TrainingScript
from npulens.training.turns import Turn, turns


def in_function(
    training: TrainingScript, lines: LineMap, begin: Sequence[str], closed: Sequence[str]
) -> Iterator[Insertion]:
    """At the begin of what the only function does that makes steps, and where it ends.

    Nothing where there are several: two may be parts of one step. Nor where the function computes
    no loss itself: another one does before.
    """
    every = [turn for turn in turns(training) if isinstance(turn.around, Function)]
    if len(every) != 1 or not isinstance(every[0].around, Function):
        return
    turn, function = every[0], every[0].around
    try:
        losses = [*_first_of_losses(turn, training)]
    except UnclearLossError:
        return
    going_back = [*_inside(turn, [each.site for each in turn.backwards], training)]
    updating = [*_inside(turn, [each.site for each in turn.updates], training)]
    block = _block(function, [*losses, *going_back, *updating])
    first = _top([*losses, *going_back], block)[0]
    last = with_what_belongs(_top(updating, block)[-1], block)
    yield before(lines, first, begin, order=3)
    yield behind(lines, last, closed, order=1)
    for exit_ in own_exits(function):
        if first.lineno <= exit_.lineno <= (last.end_lineno or last.lineno):
            yield before_exit(lines, function, exit_, closed, order=3)


def _first_of_losses(turn: Turn, training: TrainingScript) -> Iterator[ast.stmt]:
    """The first statements of what computes the losses, in whatever function."""
    start = RegionStart(training.sites, training.sites)
    for backward in turn.backwards:
        ways = [path for path in training.sites.paths_to(backward.site) if turn.holds(path)]
        region = start.trimmed(loss_region(backward, ways[0], training.barriers))
        yield region.statements[0]


def _inside(turn: Turn, ends: Sequence[Site], training: TrainingScript) -> Iterator[ast.stmt]:
    """The statements of the function of a step that lead to some calls."""
    for end in ends:
        for path in training.sites.paths_to(end):
            yield from (s.statement for s in path.sites if s.function is turn.around)


def _block(function: Function, statements: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The innermost block of a function with all of some statements."""
    block: Sequence[ast.stmt] = function.body
    while len(tops := _top(statements, block)) == 1 and tops[0] not in statements:
        inner = [each for each in _blocks(tops[0]) if _top(statements, each)]
        if len(inner) != 1:
            break
        block = inner[0]
    return block


def _blocks(around: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of a condition or the like."""
    if isinstance(around, (ast.With, ast.AsyncWith)):
        yield around.body
    elif isinstance(around, (ast.If, ast.Try)):
        yield from (around.body, around.orelse)
        yield from (each.body for each in getattr(around, "handlers", ()))


def _top(statements: Sequence[ast.stmt], block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block that some statements are in, in order."""
    wanted = {*statements}
    return [each for each in block if not wanted.isdisjoint(nodes_below(each))]
