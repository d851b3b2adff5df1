"""A training script as a whole: where its steps are, or why they are not understood."""

import ast
from typing import NamedTuple

from npulens.syntax.scopes import ModuleScope
from npulens.training.call_sites import CallSites
from npulens.training.flow import Flow
from npulens.training.frameworks import FrameworkRun, framework_runs
from npulens.training.program import Program
from npulens.training.step_loops import StepLoop, step_loops
from npulens.training.updates import Backward, Update, backwards, updates

_MOST_ROUNDS = 4
"""Methods of objects that are given on lead to further calls, with further objects."""


class TrainingScript(NamedTuple):
    """What a program does to train.

    Attributes:
        sites: Its calls.
        updates: All calls that update weights.
        backwards: All calls that compute gradients.
        steps: The loops that train.
        runs: The calls that start the loop of a library.
    """

    sites: CallSites
    updates: tuple[Update, ...]
    backwards: tuple[Backward, ...]
    steps: tuple[StepLoop, ...]
    runs: tuple[FrameworkRun, ...]

    @property
    def barriers(self) -> frozenset[ast.expr]:
        """All calls that go backward or update weights."""
        going_back = (each.site.node for each in self.backwards)
        return frozenset((*going_back, *(each.site.node for each in self.updates)))


def read_training(tree: ast.Module, module: ModuleScope) -> TrainingScript:
    """What a module does to train; everything is empty in one that does not."""
    return _read(CallSites(Program.of_one(tree, module)))


def read_program(program: Program) -> tuple[TrainingScript, Flow]:
    """What the files of a program do to train, and where its values come from.

    Objects that functions return or are given, such as a trainer, are followed to their classes.
    """
    sites = CallSites(program)
    flow = Flow(program, sites)
    for _ in range(_MOST_ROUNDS if len(program.modules) > 1 else 0):
        more = CallSites(program, flow)
        is_done = len(more.all) == len(sites.all) and more.edges == sites.edges
        sites, flow = more, Flow(program, more)
        if is_done:
            break
    return _read(sites), flow


def _read(sites: CallSites) -> TrainingScript:
    found_updates = tuple(updates(sites))
    found_backwards = tuple(backwards(sites, found_updates))
    loops = step_loops(sites, found_updates, found_backwards)
    return TrainingScript(sites, found_updates, found_backwards, loops, framework_runs(sites))
