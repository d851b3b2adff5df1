"""Where a step of training ends: behind what updates the weights last."""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from npulens.training.call_sites import CallSites, Loop
from npulens.training.step_loops import StepLoop

_BELONGS = frozenset({"step", "update", "zero_grad", "step_update"})
"""Calls behind an update that are part of it: of a scaler, a schedule, an average of weights."""


def step_ends(step: StepLoop, sites: CallSites) -> list[ast.stmt]:
    """The statements behind which a step is over: one for all updates, or one in each arm.

    If updates are made under a condition, it is in the block that the condition guards.
    """
    return _ends(_chains(step, sites), step.loop.body).statements


class _Ends(NamedTuple):
    """Where the step is over in a block, and whether that is so however the block is run."""

    statements: list[ast.stmt]
    is_always: bool


def _ends(chains: Sequence[tuple[ast.stmt, ...]], block: Sequence[ast.stmt]) -> _Ends:
    depth = 0
    is_always = True
    while (inner := _only_block([c[depth] for c in chains], chains, depth)) is not None:
        block = inner
        is_always &= not isinstance(chains[0][depth], ast.If)
        depth += 1
    last = _latest([chain[depth] for chain in chains])
    of_last = [chain[depth:] for chain in chains if chain[depth] is last]
    if isinstance(last, ast.If) and len(of_last) == len(chains):
        arms = [_of_arm(of_last, arm) for arm in (last.body, last.orelse)]
        if not all(each.is_always for each in arms):
            return _Ends([end for each in arms for end in each.statements], is_always=False)
    return _Ends([with_what_belongs(last, block)], is_always)


def _of_arm(chains: Sequence[tuple[ast.stmt, ...]], arm: Sequence[ast.stmt]) -> _Ends:
    """The ends in one arm of a condition."""
    own = [chain[1:] for chain in chains if len(chain) > 1 and chain[1] in arm]
    return _ends(own, arm) if own else _Ends([], is_always=False)


def closing(step: StepLoop, sites: CallSites, block: Sequence[ast.stmt]) -> ast.stmt:
    """The statement of a block around all updates behind which they are made, if they are."""
    chains = _chains(step, sites)
    return with_what_belongs(_latest([s for c in chains for s in c if s in block]), block)


def _chains(step: StepLoop, sites: CallSites) -> list[tuple[ast.stmt, ...]]:
    """The statements around the updates of a loop, in the loop."""
    return [
        chain
        for update in step.updates
        for path in sites.paths_to(update.site)
        for site in path.sites
        if step.loop in site.loops and (chain := inside(site.statements, step.loop))
    ]


def _latest(statements: Sequence[ast.stmt]) -> ast.stmt:
    return max(statements, key=lambda statement: statement.lineno)


def inside(statements: Sequence[ast.stmt], loop: Loop) -> tuple[ast.stmt, ...]:
    """The statements around a site that are in a loop, the outermost first."""
    found = list(statements)
    return tuple(found[found.index(loop) + 1 :]) if loop in found else ()


def _only_block(
    heads: Sequence[ast.stmt], chains: Sequence[tuple[ast.stmt, ...]], depth: int
) -> list[ast.stmt] | None:
    """The block of a condition or a `try` that holds all updates, `None` if there is none."""
    head = heads[0]
    if any(each is not head for each in heads) or not isinstance(head, (ast.If, ast.With, ast.Try)):
        return None
    if any(len(chain) <= depth + 1 for chain in chains):
        return None
    following = [chain[depth + 1] for chain in chains]
    for block in (head.body, getattr(head, "orelse", [])):
        if all(each in block for each in following):
            return list(block)
    return None


def with_what_belongs(statement: ast.stmt, block: Sequence[ast.stmt]) -> ast.stmt:
    """The last of the statements in a row that update something."""
    at = list(block).index(statement)
    for following in block[at + 1 :]:
        call = following.value if isinstance(following, ast.Expr) else None
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") not in _BELONGS:
            break
        statement = following
    return statement
