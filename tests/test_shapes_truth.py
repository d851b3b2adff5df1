"""What `analyze_shapes` says of functions, and what happens when they run with other data."""

import inspect
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from npulens.analysis import analyze_shapes
from npulens.catalog.loader import load_catalogue
from npulens.text.document import Document
from shape_execution import Execution, Name
from shape_inputs import INPUTS, Data

PATH = Path(__file__).with_name("shape_functions.py")
SEEDS = 8
LEAST = 0.97


class Counts(NamedTuple):
    """How two sets of places agree."""

    both: int
    only_said: list[object]
    only_seen: list[object]

    @property
    def recall(self) -> float:
        return self.both / (self.both + len(self.only_seen))

    @property
    def precision(self) -> float:
        return self.both / (self.both + len(self.only_said))


@cache
def execution() -> Execution:
    found = Execution(PATH)
    for name, arguments in INPUTS.items():
        function = found.module[name]
        if inspect.isclass(function):
            torch.manual_seed(0)
            function = function()
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            found.run(name, function, arguments(Data(seed)))
    return found


@cache
def said() -> tuple[set[Name], set[int]]:
    """The names whose shape is said to depend on data, and the lines said to wait."""
    document = Document(str(PATH), PATH.read_text(encoding="utf-8"))
    report = analyze_shapes(document, load_catalogue())
    names = set()
    for hint in report.hints:
        if hint.is_dynamic and hint.shape:
            line = document.position_at(hint.span.start).line + 1
            names.add((line, document.text[slice(*hint.span)]))
    lines = {
        document.position_at(each.hotspot.span.start).line + 1
        for each in report.ranked
        if each.hotspot.synchronizes
    }
    return names, lines


def compared(said_places: set[object], seen_places: set[object]) -> Counts:
    return Counts(
        len(said_places & seen_places),
        sorted(said_places - seen_places, key=str),
        sorted(seen_places - said_places, key=str),
    )


def test_there_are_functions_enough_of_both_kinds() -> None:
    assert len(INPUTS) >= 60
    changing = execution().changing()
    assert sum(changing.values()) >= 60
    assert sum(not value for value in changing.values()) >= 60


def test_shapes_that_change_are_said_to_and_no_others() -> None:
    changing = execution().changing()
    counts = compared(
        {name for name in said()[0] if name in changing},
        {name for name, value in changing.items() if value},
    )
    assert counts.recall >= LEAST, counts.only_seen
    assert counts.precision >= LEAST, counts.only_said


def test_lines_that_wait_are_said_to_and_no_others() -> None:
    counts = compared(set(said()[1]), set(execution().waits))
    assert counts.recall >= LEAST, counts.only_seen
    assert counts.precision >= LEAST, counts.only_said
