"""Which script of a project trains, and which file has its loop."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.messages import LocalizedError
from npulens.catalog.model import LocalizedText
from npulens.fixes.instruments.inserting import instrument_edits
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError, read_script
from npulens.syntax.parsing import tree_or_none
from npulens.training.training_script import TrainingScript, read_training
from npulens.workspace.project.reached_files import Script
from npulens.workspace.project.training_scripts import is_test

_MAY_TRAIN = re.compile(r"\.backward\(|\b\w*Trainer\b|\.fit\(|\bpretrain\(|\.train_batch\(")
"""What training looks like; it may be in a library, or in a class of another file."""
_MOST_FILES = 300
"""So many files are read closely; no project has more that train."""


class TrainingPlace(NamedTuple):
    """A file that trains.

    Attributes:
        line: Where a step begins, or what is not understood.
        problem: Why its steps are not understood, or `None`.
    """

    path: Path
    line: int
    problem: LocalizedText | None = None


class TrainingPlaces(NamedTuple):
    """The training of a project.

    Attributes:
        understood: The files whose steps are understood, the most likely first.
        others: Those whose steps are not.
        entry: The script that starts the first of them, as far as that is known.
        sign: Where something looks like training, whether it is understood or not.
    """

    understood: tuple[TrainingPlace, ...] = ()
    others: tuple[TrainingPlace, ...] = ()
    entry: Path | None = None
    sign: TrainingPlace | None = None

    @property
    def loop(self) -> Path | None:
        """The file with the loop."""
        return next((place.path for place in self.understood), None)

    @property
    def nearest(self) -> Path | None:
        """The file with the loop, or the one that comes nearest to having one."""
        return next((place.path for place in (*self.understood, *self.others)), None)


def training_places(
    texts: Iterable[tuple[Path, str]], scripts: Sequence[Script], root: Path
) -> TrainingPlaces:
    """What trains among some Python files, given what starts in them."""
    candidates = [each for each in texts if _MAY_TRAIN.search(each[1])]
    candidates = [(path, text) for path, text in candidates if not is_test(path, root)]
    found = [_place(path, text) for path, text in candidates[:_MOST_FILES]]
    started = {script.path: script.reached for script in scripts}

    def order(place: TrainingPlace) -> tuple[bool, bool, int, str]:
        is_reached = any(place.path in reached for reached in started.values())
        return not is_reached, *_likely(place.path, root)

    places = sorted((place for place in found if place is not None), key=order)
    understood = tuple(place for place in places if place.problem is None)
    others = tuple(place for place in places if place.problem is not None)
    return TrainingPlaces(understood, others, _entry(places, scripts, root), _sign(candidates))


def _sign(candidates: Sequence[tuple[Path, str]]) -> TrainingPlace | None:
    """The first line that looks like training, by its words."""
    for path, text in candidates:
        found = _MAY_TRAIN.search(text)
        if found is not None:
            return TrainingPlace(path, text.count("\n", 0, found.start()) + 1)
    return None


def _place(path: Path, text: str) -> TrainingPlace | None:
    tree = tree_or_none(text)
    if tree is None or not tree.body:
        return None
    training = read_training(tree, read_script(tree, text).module)
    line = _first_line(training)
    if line is not None:
        return TrainingPlace(path, line)
    if not training.updates and not training.backwards:
        return None
    try:
        instrument_edits(text, BY_NAME["step-time"])
    except UnclearError as error:
        return TrainingPlace(path, error.line, error.text)
    except LocalizedError:
        return None
    return None


def _first_line(training: TrainingScript) -> int | None:
    """Where the first loop that trains begins, or is started."""
    lines = [step.loop.lineno for step in training.steps]
    return min(lines or [run.site.node.lineno for run in training.runs], default=None)


def _entry(places: Sequence[TrainingPlace], scripts: Sequence[Script], root: Path) -> Path | None:
    """The script that starts the training: the file with the loop, or one that imports it.

    Where no loop is understood, only the name of a script tells that it trains.
    """
    if not places:
        return None
    first = min(places, key=lambda place: place.problem is not None)
    starting = [script.path for script in scripts if first.path in script.reached]
    if first.problem is not None:
        starting = [path for path in starting if "train" in path.name]
        return min(starting, key=lambda path: _likely(path, root), default=None)
    if first.path in starting or not starting:
        return first.path
    return min(starting, key=lambda path: _likely(path, root))


def _likely(path: Path, root: Path) -> tuple[bool, int, str]:
    """Lower for a script that is more likely to be the one that people start."""
    inside = _inside(path, root)
    return "train" not in inside.name, len(inside.parts), str(inside)


def _inside(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path
