"""The lines of a `GradScaler`: what is unscaled before clipping, and when the scale is updated."""

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from npulens.fixes.instruments.between_passes import is_clip
from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.by_node import once_by_node
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.turns import Turn
from npulens.training.updates import Backward, Update


class Clip(NamedTuple):
    """A call that clips gradients."""

    site: Site


Event = Backward | Update | Clip


def scaler_lines(
    script: Script, sites: CallSites, turn: Turn, scaler: str, clipping: Container[ast.expr] = ()
) -> Iterator[Insertion]:
    """The lines of a scaler in what a turn runs.

    Args:
        script: The script.
        sites: Its calls.
        turn: What updates weights.
        scaler: What the scaler is called.
        clipping: The calls of functions of other files that clip gradients.

    Raises:
        UnclearError: It is not clear what is clipped, or it is clipped without an update.
    """
    clips = [
        Clip(site)
        for site, call in sites.calls()
        if (is_clip(call) or call in clipping)
        and any(turn.holds(path) for path in sites.paths_to(site))
    ]
    events: list[Event] = [*turn.backwards, *turn.updates, *clips]
    events.sort(key=lambda each: (each.site.node.lineno, each.site.node.col_offset))
    yield from _unscaled(script, events, scaler)
    for group in _groups(script, events):
        yield behind(script.lines, group.last, (f"{scaler}.update()",), order=0)


def _unscaled(script: Script, events: Sequence[Event], scaler: str) -> Iterator[Insertion]:
    """`scaler.unscale_(optimizer)` before the gradients of a step are clipped."""
    every = list(dict.fromkeys(script.source(e.optimizer) for e in events if isinstance(e, Update)))
    for run in _between_backwards(events):
        clips = [e.site for e in run if isinstance(e, Clip) and not _is_late(e, events)]
        stepped = [e for e in run if isinstance(e, Update)]
        _require_one_step(script, stepped)
        if not clips:
            continue
        optimizers = list(dict.fromkeys(script.source(each.optimizer) for each in stepped))
        optimizers = optimizers or every[: len(every) == 1]
        first = _first_of(clips)
        if not optimizers or first is None:
            raise UnclearError(clips[0].node.lineno, "instrument.clips-for-several")
        for each in stepped:
            _require_step_with_clip(script, each, clips, events)
        lines = tuple(f"{scaler}.unscale_({optimizer})" for optimizer in optimizers)
        yield before(script.lines, first, lines, order=3)


def _is_late(clip: Clip, events: Sequence[Event]) -> bool:
    """Whether gradients are clipped that no step takes: behind it, or before they are computed.

    Those that are there were unscaled by the step before.
    """
    own = [e for e in events if e.site.function is clip.site.function and not isinstance(e, Clip)]
    line = clip.site.node.lineno
    above = [each for each in own if each.site.node.lineno < line]
    below = [each for each in own if each.site.node.lineno > line]
    is_computed = bool(above) and isinstance(above[-1], Backward)
    is_taken = bool(below) and isinstance(below[0], Update)
    return bool(own) and not is_computed and not is_taken


def _between_backwards(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The clips and updates that use the same gradients."""
    run: list[Event] = []
    for event in events:
        if isinstance(event, Backward):
            yield run
            run = []
        else:
            run.append(event)
    yield run


def _require_one_step(script: Script, stepped: Sequence[Update]) -> None:
    """See that no optimizer is stepped twice with the same gradients: they are unscaled once."""
    for first, second in pairwise(stepped):
        chains = [first.site.statements, second.site.statements]
        is_same = script.source(first.optimizer) == script.source(second.optimizer)
        if is_same and first.site.function is second.site.function:
            depth = _common_depth(chains)
            if len(chains[0]) == depth + 1 and chains[0][depth] is not chains[1][depth]:
                raise UnclearError(second.site.node.lineno, "instrument.stepped-twice")


def _require_step_with_clip(
    script: Script, update: Update, clips: Sequence[Site], events: Sequence[Event]
) -> None:
    """See that no turn clips without a step: a scaler unscales once for each step."""
    for clip in clips:
        if clip.function is not update.site.function:
            continue
        if _leaves_between(script, clip.statement, update.site.statement):
            raise UnclearError(clip.node.lineno, "instrument.clips-without-step")
        conditions = {*_conditions(update.site)} - {*clip.statements}
        if conditions and not _goes_back_as_well(script, update, clip, events):
            raise UnclearError(clip.node.lineno, "instrument.clips-without-step")


def _conditions(site: Site) -> Iterator[ast.If]:
    return (each for each in site.statements[:-1] if isinstance(each, ast.If))


def _goes_back_as_well(script: Script, update: Update, clip: Site, events: Sequence[Event]) -> bool:
    """Whether an update is left out with its backward pass, and another one never is.

    There are no gradients then to unscale, and the scale is updated for the other.
    """
    around = {*clip.statements}
    own = [e for e in events if e.site.function is update.site.function]
    tests = {script.source(each.test) for each in {*_conditions(update.site)} - around}
    is_shared = any(
        isinstance(e, Backward)
        and tests == {script.source(each.test) for each in {*_conditions(e.site)} - around}
        for e in own
    )
    is_sure = any(isinstance(e, Update) and {*_conditions(e.site)} <= around for e in own)
    return is_shared and is_sure


def _first_of(clips: Sequence[Site]) -> ast.stmt | None:
    """The statement before which gradients are unscaled once for all clips, if there is one."""
    if any(clip.function is not clips[0].function for clip in clips):
        return None
    chains = [clip.statements for clip in clips]
    depth = _common_depth(chains)
    return min((chain[depth] for chain in chains), key=lambda statement: statement.lineno)


def _common_depth(chains: Sequence[tuple[ast.stmt, ...]]) -> int:
    """How many statements are around all of some statements."""
    depth = 0
    while all(len(c) > depth + 1 and c[depth] is chains[0][depth] for c in chains):
        depth += 1
    return depth


class _Group(NamedTuple):
    """Updates after which a scaler is updated once, and the statement behind which that is."""

    updates: tuple[Update, ...]
    last: ast.stmt


def _groups(script: Script, events: Sequence[Event]) -> list[_Group]:
    """The updates that end with one update of the scale.

    It must not change between a backward pass and a step with its gradients, and each optimizer is
    stepped once before it changes.
    """
    groups: list[_Group] = []
    goes_back = False
    for event in events:
        if isinstance(event, Backward):
            goes_back = True
        if not isinstance(event, Update):
            continue
        joined = _joined(script, groups[-1], event, goes_back=goes_back) if groups else None
        if joined is None:
            groups.append(_Group((event,), event.site.statement))
        else:
            groups[-1] = joined
        goes_back = False
    return groups


def _joined(script: Script, group: _Group, update: Update, *, goes_back: bool) -> _Group | None:
    """A group with one more update, `None` if the scale has to change before it."""
    updates = (*group.updates, update)
    if len({script.source(each.optimizer) for each in updates}) < len(updates):
        return None
    if any(each.site.function is not update.site.function for each in updates):
        return None if goes_back else _Group(updates, update.site.statement)
    if _leaves_between(script, group.updates[-1].site.statement, update.site.statement):
        return None
    chains = [each.site.statements for each in updates]
    depth = _common_depth(chains)
    direct = [len(chain) == depth + 1 for chain in chains]
    parent = chains[0][depth - 1] if depth else None
    if isinstance(parent, ast.If) and len({c[depth] in parent.body for c in chains}) > 1:
        return _Group(updates, parent) if all(direct) else None  # in both arms of a condition
    if not all(direct) and (goes_back or not any(direct)):
        return None
    return _Group(updates, max((c[depth] for c in chains), key=lambda each: each.lineno))


def _leaves_between(script: Script, first: ast.stmt, last: ast.stmt) -> bool:
    """Whether a turn may end between two statements of a function."""
    exits = _exits(script.tree)
    return bisect_left(exits, last.lineno) > bisect_right(exits, first.lineno)


@once_by_node
def _exits(tree: ast.AST) -> list[int]:
    """The lines at which a turn or a function may end, in their order."""
    leaving = (ast.Continue, ast.Break, ast.Return)
    return sorted(node.lineno for node in nodes_below(tree) if isinstance(node, leaving))
