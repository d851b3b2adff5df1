"""A training script as a whole: where its steps are, or why they are not understood."""

import ast
from typing import NamedTuple

from npulens.syntax.scopes import Scope
from npulens.training.call_sites import CallSites
from npulens.training.frameworks import FrameworkRun, framework_runs
from npulens.training.step_loops import StepLoop, step_loops
from npulens.training.updates import Backward, Update, backwards, updates


class TrainingScript(NamedTuple):
    """What a file does to train.

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


def read_training(tree: ast.Module, module: Scope) -> TrainingScript:
    """What a module does to train; everything is empty in one that does not."""
    sites = CallSites(tree, module)
    found_updates = tuple(updates(sites))
    found_backwards = tuple(backwards(sites, found_updates))
    loops = step_loops(sites, found_updates, found_backwards)
    return TrainingScript(sites, found_updates, found_backwards, loops, framework_runs(sites))
