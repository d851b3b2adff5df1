"""Lines that replace `optimizer.step`: they come behind what makes the learning rate's schedule."""

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from npulens.fixes.scripts import UnclearError
from npulens.training.call_sites import Path, Site
from npulens.training.flow import Flow
from npulens.training.schedules import scheduled
from npulens.training.training_script import TrainingScript


class Spot(NamedTuple):
    """Where lines are put in: the function of a call, before a line of the file."""

    site: Site
    line: int


def require_behind_schedules(
    spots: Iterable[Spot], optimizers: Iterable[ast.expr], training: TrainingScript, flow: Flow
) -> None:
    """See that no schedule is made behind lines that are put in.

    Args:
        spots: Where the lines are put in.
        optimizers: What makes the optimizers that they are about.
        training: What the script does to train.
        flow: Where its values come from.

    Raises:
        UnclearError: One is.
    """
    made = set(optimizers)
    places = [*spots]
    for schedule in _schedules(made, training, flow):
        for spot in places:
            if _is_made_behind(schedule, spot, training):
                raise UnclearError(schedule.node.lineno, "instrument.schedule-behind")


def _schedules(made: set[ast.expr], training: TrainingScript, flow: Flow) -> Iterator[Site]:
    """The calls that make a schedule of some optimizers."""
    for site, call in training.sites.calls():
        given = (value.node for each in scheduled(call, flow) for value in flow.origins(each))
        if any(node in made for node in given):
            yield site


def _is_made_behind(schedule: Site, spot: Spot, training: TrainingScript) -> bool:
    to_spot = training.sites.paths_to(spot.site)
    return any(
        _leads_behind(path, other, spot)
        for path in training.sites.paths_to(schedule)
        for other in to_spot
        if path.start is other.start
    )


def _leads_behind(path: Path, other: Path, spot: Spot) -> bool:
    """Whether a way passes the place of some lines: where both ways part, it goes further down."""
    for each, its in zip_longest(path.sites, other.sites):
        if each is None or its is None or each.function is not its.function:
            return False
        if its is other.sites[-1]:
            return each.node.lineno >= spot.line and not _are_in_two_arms(each, its)
        if each is not its:
            return each.node.lineno > its.node.lineno and not _are_in_two_arms(each, its)
    return False


def _are_in_two_arms(one: Site, other: Site) -> bool:
    """Whether two calls stand in the two arms of a condition."""
    arms = dict(_arms(one))
    return any(arms.get(around, is_first) != is_first for around, is_first in _arms(other))


def _arms(site: Site) -> Iterator[tuple[ast.If, bool]]:
    for around, inner in pairwise(site.statements):
        if isinstance(around, ast.If):
            yield around, inner in around.body
