"""The guide of a project: each point with its state, what shows it, and the command for it."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import LocalizedText
from npulens.workspace.guiding.guide_evidence import Checked, CodePlace, GuideEvidence
from npulens.workspace.guiding.guide_points import GuidePlan, PhaseTitle, Point, guide_plan
from npulens.workspace.guiding.guide_state import DONE, OPEN, RUN, Mark, read_state
from npulens.workspace.guiding.point_answers import Answer, all_hold, any_holds
from npulens.workspace.project.reached_files import ReachedFiles

NOT_NEEDED = "not-needed"
CODE = "code"
UNKNOWN_SCRIPT = "SCRIPT"
"""Stands in a command for a script that is not known."""


class GuidePoint(NamedTuple):
    """A point in a project.

    Attributes:
        state: `done`, `skipped`, `not-needed` or `open`.
        by: `hand`, `code` or `run`, empty for what is open without a run.
        when: The day of the mark, empty for what is read from the code.
        note: What the mark says besides.
        evidence: What shows it, or what is in the way, if there is something to say.
        command: What to do next; empty where there is no command.
        place: The line of the evidence, if it is in a file.
    """

    point: Point
    state: str
    by: str = ""
    when: str = ""
    note: str = ""
    evidence: LocalizedText | None = None
    command: str = ""
    place: CodePlace | None = None

    @property
    def is_open(self) -> bool:
        return self.state == OPEN


class GuidePhase(NamedTuple):
    """A phase with its points."""

    phase: PhaseTitle
    points: tuple[GuidePoint, ...]

    @property
    def closed(self) -> int:
        """How many points are not open."""
        return sum(not point.is_open for point in self.points)


class Guide(NamedTuple):
    """The guide of a project."""

    root: Path
    phases: tuple[GuidePhase, ...]

    @property
    def points(self) -> tuple[GuidePoint, ...]:
        """All points, in order."""
        return tuple(point for phase in self.phases for point in phase.points)

    @property
    def next(self) -> GuidePoint | None:
        """The first open point."""
        return next(iter(self.open_points), None)

    @property
    def open_points(self) -> tuple[GuidePoint, ...]:
        """All open points, in order."""
        return tuple(point for point in self.points if point.is_open)

    @property
    def needed(self) -> int:
        """How many points the project needs."""
        return len(self.points) - self.count(NOT_NEEDED)

    def count(self, state: str) -> int:
        """How many points are in a state."""
        return sum(point.state == state for point in self.points)


def guide_of(
    root: Path,
    files: Sequence[Checked],
    reached: ReachedFiles,
    *,
    plan: GuidePlan | None = None,
    writing: Path | None = None,
) -> Guide:
    """The guide of a project.

    Args:
        root: Its folder, absolute, which holds the state file if there is one.
        files: All its files that npulens reads, with the findings.
        reached: What its scripts import.
        plan: The phases and points, if not those of npulens.
        writing: A file that is about to be written, such as the report with this guide.

    Raises:
        GuideStateError: The state file cannot be used.
    """
    marks = read_state(root)
    plan = plan or guide_plan()
    evidence = GuideEvidence(root, files, reached, plan, writing)
    names = _placeholders(evidence)
    points = [_point(each, marks.get(each.id), evidence, names) for each in plan.points]
    return Guide(
        root,
        tuple(
            GuidePhase(phase, tuple(each for each in points if each.point.phase == phase.id))
            for phase in plan.phases
        ),
    )


def _point(
    point: Point, mark: Mark | None, evidence: GuideEvidence, names: Mapping[str, str]
) -> GuidePoint:
    command = _command(point, evidence, names)
    if mark is not None and mark.state != OPEN:
        return GuidePoint(point, mark.state, mark.by, mark.when, mark.note, command=command)
    if point.only_if is not None and evidence.uses_torch:
        only_if = any_holds(point.only_if, evidence)
        if not only_if.holds:
            return GuidePoint(point, NOT_NEEDED, CODE, evidence=only_if.evidence, command=command)
    if mark is not None:  # a run that failed
        return GuidePoint(point, OPEN, RUN, mark.when, mark.note, command=command)
    answer = _answer(point, evidence)
    if answer.holds:
        return GuidePoint(
            point, DONE, CODE, evidence=answer.evidence, command=command, place=answer.place
        )
    begun = _begun(point, evidence)
    said = begun if begun.holds else answer
    return GuidePoint(point, OPEN, evidence=said.evidence, command=command, place=said.place)


def _answer(point: Point, evidence: GuideEvidence) -> Answer:
    """What the code says; nothing of what only a person or a run can know."""
    asked = [need for need in point.needs if not need.run]
    return all_hold(asked, evidence) if asked else Answer(False)


def _begun(point: Point, evidence: GuideEvidence) -> Answer:
    if point.begun is None or not evidence.uses_torch:
        return Answer(False)
    return any_holds(point.begun, evidence)


def _command(point: Point, evidence: GuideEvidence, names: Mapping[str, str]) -> str:
    text = point.then if point.then and _begun(point, evidence).holds else point.command
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _placeholders(evidence: GuideEvidence) -> dict[str, str]:
    training = evidence.training if evidence.uses_torch else None
    paths = {
        "entry": None if training is None else training.entry,
        "loop": None if training is None else training.loop,
        "nearest": None if training is None else training.nearest,
    }
    return {name: _shown(path, evidence.root) for name, path in paths.items()}


def _shown(path: Path | None, root: Path) -> str:
    """A path from the folder of the project, as a shell takes it."""
    if path is None:
        return UNKNOWN_SCRIPT
    text = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    return shlex.quote(text) if text.isprintable() else UNKNOWN_SCRIPT
