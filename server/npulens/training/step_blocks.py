"""Where the turns of a loop train that evaluates or only collects data in other turns."""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import Path
from npulens.training.loss_regions import LossRegion, UnclearLossError, loss_region
from npulens.training.statement_blocks import block_with
from npulens.training.step_ends import inside
from npulens.training.step_loops import StepLoop, own_exits
from npulens.training.training_script import TrainingScript

_PURE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp)
_PURE_PARTS = (ast.expr_context, ast.cmpop, ast.boolop, ast.Not)
WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
_OF_EVALUATION = WITHOUT_GRADIENTS | {"eval"}


class StepBlock(NamedTuple):
    """What a turn runs only if it trains.

    Attributes:
        body: The statements that all of it is in: the body of the loop, or of a condition in it.
        condition: What tells at the begin of the turn whether it trains, if the body is that of the
            loop and the turn may only evaluate; empty if there is no such turn.
    """

    body: Sequence[ast.stmt]
    condition: str = ""


def step_block(
    step: StepLoop, training: TrainingScript, passes: Sequence[ast.stmt] = ()
) -> StepBlock:
    """The block in which a loop trains.

    A function that is given an optimizer to train, and none to evaluate, does both in one loop.

    Args:
        step: The loop.
        training: What the script does to train.
        passes: Forward passes above what computes the losses, which belong to the step.
    """
    sites = training.sites
    trains = (*(u.site for u in step.updates), *(b.site for b in step.backwards))
    chains = [
        chain
        for each in trains
        for path in sites.paths_to(each)
        for site in path.sites
        if step.loop in site.loops and (chain := inside(site.statements, step.loop))
    ]
    conditions = _conditions(chains)
    if not conditions:
        return StepBlock(step.loop.body)
    outside = _computed_outside(step, training, [block for _, block in conditions], passes)
    for _, block in reversed(conditions):
        if not any(each is block for each in outside):
            return StepBlock(block)
    for condition, block in conditions:
        if _holds_all_along(condition.test, step):
            test = ast.unparse(condition.test)
            return StepBlock(step.loop.body, test if block is condition.body else f"not ({test})")
    return StepBlock(step.loop.body)


def first_that_trains(
    step: StepLoop,
    body: Sequence[ast.stmt],
    training: TrainingScript,
    trimmed: Callable[[LossRegion], LossRegion],
    passes: Sequence[ast.stmt] = (),
) -> ast.stmt:
    """The first statement of a turn behind those that only evaluate now and then, or may end it.

    Args:
        step: The loop.
        body: The statements that a turn trains in.
        training: What the script does to train.
        trimmed: Takes from what computes a loss the statements that only prepare data.
        passes: Forward passes above what computes the losses, which belong to the step.
    """
    ends = [each.site for each in step.updates] + [each.site for each in step.backwards]
    trains = {
        id(statement)
        for end in ends
        for path in training.sites.paths_to(end)
        for site in path.sites
        for statement in site.statements
    }
    losses = [*_first_of_losses(step, training, trimmed)]
    first = {id(each) for each in (*losses, *passes) if each is not None}
    exits = {id(each) for each in own_exits(step.loop)} if None not in losses else set()
    start = body[0]
    for at, statement in enumerate(body[:-1]):
        below = {id(node) for node in nodes_below(statement)}
        if id(statement) in trains or not first.isdisjoint(below):
            break
        is_evaluation = isinstance(statement, ast.If) and _evaluates(statement, training)
        if is_evaluation or not exits.isdisjoint(below):
            start = body[at + 1]
    return start


def _evaluates(statement: ast.stmt, training: TrainingScript) -> bool:
    """Whether a statement runs a model without gradients, itself or in functions that it calls."""
    nodes = training.sites.nodes_run([statement])
    return any(getattr(n, "attr", getattr(n, "id", "")) in _OF_EVALUATION for n in nodes)


def _conditions(chains: Sequence[tuple[ast.stmt, ...]]) -> list[tuple[ast.If, list[ast.stmt]]]:
    """The conditions around all of some statements, each with the branch, the outermost first."""
    found = []
    shortest = min((len(chain) for chain in chains), default=0)
    for depth in range(shortest - 1):
        head = chains[0][depth]
        if any(chain[depth] is not head for chain in chains):
            break
        block = block_with(head, chains[0][depth + 1])
        if block is None or any(chain[depth + 1] not in block for chain in chains):
            break
        if isinstance(head, ast.If):
            found.append((head, block))
    return found


def _computed_outside(
    step: StepLoop,
    training: TrainingScript,
    blocks: Sequence[list[ast.stmt]],
    passes: Sequence[ast.stmt],
) -> list[list[ast.stmt]]:
    """The blocks of which a loss is computed outside, in the loop."""
    of_loop = {id(node) for statement in step.loop.body for node in nodes_below(statement)}
    first = [
        each
        for each in (*_first_of_losses(step, training), *passes)
        if each is None or id(each) in of_loop
    ]
    return [
        block for block in blocks if any(each is None or not _is_in(each, block) for each in first)
    ]


def _is_in(node: ast.stmt, block: Sequence[ast.stmt]) -> bool:
    return any(node is each for statement in block for each in nodes_below(statement))


def losses_of(step: StepLoop, training: TrainingScript) -> Iterator[LossRegion]:
    """What computes the losses of a loop, as far as it is clear."""
    for backward in step.backwards:
        ways: list[Path] = training.sites.paths_to(backward.site)
        for path in [each for each in ways if step.loop in each.loops][:1]:
            with suppress(UnclearLossError):
                yield loss_region(backward, path, training.barriers)


def _first_of_losses(
    step: StepLoop,
    training: TrainingScript,
    trimmed: Callable[[LossRegion], LossRegion] = lambda region: region,
) -> Iterator[ast.stmt | None]:
    """The first statements that compute the losses; `None` where that is not clear."""
    for backward in step.backwards:
        ways: list[Path] = training.sites.paths_to(backward.site)
        path = next((each for each in ways if step.loop in each.loops), None)
        try:
            yield (
                None
                if path is None
                else trimmed(loss_region(backward, path, training.barriers)).statements[0]
            )
        except UnclearLossError:
            yield None


def is_pure(test: ast.expr) -> bool:
    """Whether a condition only reads what is there, so that it may be asked twice."""
    return all(isinstance(each, (*_PURE, *_PURE_PARTS)) for each in nodes_below(test))


def _holds_all_along(test: ast.expr, step: StepLoop) -> bool:
    """Whether a condition is the same at the begin of a turn: it reads what the loop leaves."""
    parts = [*nodes_below(test)]
    if not is_pure(test):
        return False
    read = {each.id for each in parts if isinstance(each, ast.Name)}
    has_state = any(isinstance(e, ast.Attribute) and e.attr != "training" for e in parts)
    stored = {
        each.id
        for each in nodes_below(step.loop)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return not has_state and read.isdisjoint(stored)
