"""What is computed again and again: the turn of a loop, or a function that another file calls."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from npulens.syntax.bindings import Function
from npulens.training.call_sites import Loop, Path
from npulens.training.training_script import TrainingScript
from npulens.training.updates import Backward, Update


class Turn(NamedTuple):
    """A step of training, wherever its loop is.

    Attributes:
        around: The loop whose turns are steps, or the function that makes a step.
        updates: What updates weights in it.
        backwards: What computes gradients in it.
    """

    around: Loop | Function
    updates: tuple[Update, ...]
    backwards: tuple[Backward, ...]

    def holds(self, path: Path) -> bool:
        """Whether a way leads through it."""
        return self.around in path.loops or any(s.function is self.around for s in path.sites)


def turns(training: TrainingScript) -> tuple[Turn, ...]:
    """The steps of a script: those of its loops, or of the functions that other files call."""
    if training.steps:
        return tuple(Turn(s.loop, s.updates, s.backwards) for s in training.steps)
    return tuple(_in_functions(training))


def _outermost(path: Path) -> Function | None:
    """The function that a way starts in, or that the module calls or hands to a library."""
    return next((site.function for site in path.sites if site.function is not None), None)


def _in_functions(training: TrainingScript) -> Iterator[Turn]:
    """Functions that no loop of the file runs, that compute gradients and update weights."""
    updating: dict[ast.AST, dict[int, Update]] = defaultdict(dict)
    going_back: dict[ast.AST, dict[int, Backward]] = defaultdict(dict)
    for update in training.updates:
        for path in training.sites.paths_to(update.site):
            if (outermost := _outermost(path)) is not None:
                updating[outermost][id(update)] = update
    for backward in training.backwards:
        for path in training.sites.paths_to(backward.site):
            if (outermost := _outermost(path)) is not None:
                going_back[outermost][id(backward)] = backward
    for function, updates in updating.items():
        if isinstance(function, Function) and function in going_back:
            yield Turn(function, tuple(updates.values()), tuple(going_back[function].values()))
