"""Where a step of training ends: behind what updates the weights last."""

import ast
from collections.abc import Sequence

from npulens.training.call_sites import CallSites, Loop
from npulens.training.step_loops import StepLoop

_BELONGS = frozenset({"step", "update", "zero_grad", "step_update"})
"""Calls behind an update that are part of it: of a scaler, a schedule, an average of weights."""


def step_end(step: StepLoop, sites: CallSites) -> ast.stmt:
    """The statement behind which a step is over.

    If updates are made under a condition, it is in the block that the condition guards.
    """
    chains = _chains(step, sites)
    block: Sequence[ast.stmt] = step.loop.body
    depth = 0
    while (inner := _only_block([c[depth] for c in chains], chains, depth)) is not None:
        block = inner
        depth += 1
    return _with_what_belongs(_latest([chain[depth] for chain in chains]), block)


def closing(step: StepLoop, sites: CallSites, block: Sequence[ast.stmt]) -> ast.stmt:
    """The statement of a block around all updates behind which they are made, if they are."""
    chains = _chains(step, sites)
    return _with_what_belongs(_latest([s for c in chains for s in c if s in block]), block)


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


def _with_what_belongs(statement: ast.stmt, block: Sequence[ast.stmt]) -> ast.stmt:
    """The last of the statements in a row that update something."""
    at = list(block).index(statement)
    for following in block[at + 1 :]:
        call = following.value if isinstance(following, ast.Expr) else None
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") not in _BELONGS:
            break
        statement = following
    return statement
