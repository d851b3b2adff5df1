"""Which loop of a script is the one whose every turn is a step of training."""

import ast
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.training.call_sites import CallSites, Loop, Path
from npulens.training.statement_blocks import block_with
from npulens.training.updates import Backward, Update


class StepLoop(NamedTuple):
    """A loop that trains.

    Attributes:
        loop: The loop itself.
        ways: The ways from where the file starts to the loop: each ends with a site in it.
        updates: What updates weights in a turn.
        backwards: What computes gradients in a turn.
    """

    loop: Loop
    ways: tuple[Path, ...]
    updates: tuple[Update, ...]
    backwards: tuple[Backward, ...]

    @property
    def outer_loops(self) -> tuple[Loop, ...]:
        """The loops around it on the first way, the outermost first: those of the epochs."""
        loops = self.ways[0].loops
        return loops[: loops.index(self.loop)]


def step_loops(
    sites: CallSites, updates: Sequence[Update], backwards: Sequence[Backward]
) -> tuple[StepLoop, ...]:
    """The loops that train, in the order of the source.

    A step is what ends with an update of weights. So the loop of a step is the innermost one around
    an update in which gradients are computed, unless a loop around it has a step of its own, as the
    critic of a GAN is updated several times in each step of its generator. Where a turn of the loop
    around makes either its own step or those of the inner loop, both are such loops.
    """
    going_back = [(b, path) for b in backwards for path in sites.paths_to(b.site)]
    with_gradients: dict[Loop, dict[int, Backward]] = defaultdict(dict)
    for backward, path in going_back:
        for loop in path.loops:
            with_gradients[loop][id(backward)] = backward
    episodes = {each for update in updates for each in _episodes(sites, update)}
    own = {(path.start, _without_episodes(path.loops, episodes)) for _, path in going_back}
    trimmed = [*_trimmed(sites, updates, with_gradients.keys() - episodes)]
    together = _taking_turns(trimmed)
    ways: dict[Loop, dict[Path, None]] = defaultdict(dict)
    of_loop: dict[Loop, dict[int, Update]] = defaultdict(dict)
    steps = {(path.start, loops) for _, path, loops in trimmed if (path.start, loops) in own}
    for update, path, loops in trimmed:
        start = path.start
        if not loops or (start is not None and (start, ()) in steps):
            continue  # a turn of a loop in another file
        is_rest = (start, loops) not in own
        if is_rest and any(s is start and _is_within(each, loops) for s, each in steps):
            continue  # behind the loop of the steps: the rest of accumulated gradients
        outer = (
            loops[:n]
            for n in range(1, len(loops))
            if (start, loops[:n]) in steps and not _is_other_arm(path, loops[:n], trimmed)
        )
        loop = next(outer, loops)[-1]
        loop = together.get(loop, loop)
        ways[loop][path] = None
        of_loop[loop][id(update)] = update
    found = [
        StepLoop(
            loop,
            tuple(paths),
            tuple(of_loop[loop].values()),
            tuple(b for b in with_gradients[loop].values() if _is_of(loop, b, going_back, ways)),
        )
        for loop, paths in ways.items()
    ]
    return tuple(sorted(found, key=lambda each: each.loop.lineno))


def _is_other_arm(
    path: Path,
    outer: tuple[Loop, ...],
    trimmed: Sequence[tuple[Update, Path, tuple[Loop, ...]]],
) -> bool:
    """Whether a way is in another arm of a condition than all steps that a loop makes itself."""
    arms = _arms(path, outer[-1])
    return all(
        any(arms.get(each, arm) != arm for each, arm in _arms(other, outer[-1]).items())
        for _, other, loops in trimmed
        if loops == outer
    )


def _arms(path: Path, loop: Loop) -> dict[ast.If, bool]:
    """The conditions around a way in a loop, each with whether it is in their first arm."""
    found: dict[ast.If, bool] = {}
    for site in path.sites:
        if loop in site.loops:
            inner = site.statements[site.statements.index(loop) :]
            for around, statement in pairwise(inner):
                if isinstance(around, ast.If):
                    found[around] = statement in around.body
    return found


def _is_of(
    loop: Loop,
    backward: Backward,
    going_back: Sequence[tuple[Backward, Path]],
    loops: Container[Loop],
) -> bool:
    """Whether gradients are computed in a loop and in no other loop of steps in it."""
    ways = [path.loops for each, path in going_back if each is backward and loop in path.loops]
    return any(all(each not in loops for each in way[way.index(loop) + 1 :]) for way in ways)


def _episodes(sites: CallSites, update: Update) -> Iterator[Loop]:
    """The loops that end with an update, in another loop: one turn of that is the step."""
    for path in sites.paths_to(update.site):
        for site in path.sites:
            for loop in site.loops:
                inner = site.statements[site.statements.index(loop) :]
                if loop is not path.loops[0] and _leaves_behind(loop, inner):
                    yield loop


def _leaves_behind(loop: Loop, chain: Sequence[ast.stmt]) -> bool:
    """Whether a loop is left in the block of an update or of what is around it, behind that."""
    exits = own_exits(loop)
    for around, statement in pairwise(chain):
        block = block_with(around, statement) or ()
        for each in block[block.index(statement) + 1 :] if block else ():
            if each in exits and not isinstance(each, ast.Continue):
                return True
    return False


def _without_episodes(loops: tuple[Loop, ...], episodes: Container[Loop]) -> tuple[Loop, ...]:
    while loops and loops[-1] in episodes:
        loops = loops[:-1]
    return loops


def _trimmed(
    sites: CallSites, updates: Sequence[Update], with_gradients: Container[Loop]
) -> Iterator[tuple[Update, Path, tuple[Loop, ...]]]:
    """The ways to the updates with their loops, down to the innermost that computes gradients."""
    for update in updates:
        for path in sites.paths_to(update.site):
            loops = path.loops
            while loops and loops[-1] not in with_gradients:
                loops = loops[:-1]
            yield update, path, loops


def _taking_turns(
    trimmed: Sequence[tuple[Update, Path, tuple[Loop, ...]]],
) -> dict[Loop, Loop]:
    """Loops that a number ends, side by side and each with an optimizer of its own.

    They are the parts of one step, which the loop around them makes: a few updates of the
    discriminator, then a few of the generator.
    """
    inner: dict[Loop, dict[Loop, set[str]]] = defaultdict(lambda: defaultdict(set))
    for update, _, loops in trimmed:
        if len(loops) > 1 and _counts(loops[-1]):
            inner[loops[-2]][loops[-1]].add(ast.unparse(update.optimizer))
    return {
        loop: outer
        for outer, loops in inner.items()
        for loop in loops
        if len(loops) > 1 and len(set().union(*loops.values())) == sum(map(len, loops.values()))
    }


def _counts(loop: Loop) -> bool:
    """`for _ in range(n)`."""
    iterated = getattr(loop, "iter", None)
    return isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") == "range"


def _is_within(inner: tuple[Loop, ...], outer: tuple[Loop, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def own_exits(loop: Loop | Function) -> list[ast.Continue | ast.Break | ast.Return]:
    """What leaves a turn of a loop, or a function, early, in the order of the source."""
    found: list[ast.Continue | ast.Break | ast.Return] = []
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in reversed(loop.body)]
    while pending:
        node, is_own = pending.pop()
        if isinstance(node, ast.Return) or (is_own and isinstance(node, (ast.Continue, ast.Break))):
            found.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        inner = is_own and not isinstance(node, Loop)
        pending += [(child, inner) for child in reversed([*ast.iter_child_nodes(node)])]
    return found
