"""What `npulens verify` notes in the state file of a guide."""

from pathlib import Path

from npulens.workspace.files.folders import STATE_FILE
from npulens.workspace.guiding.guide_points import guide_plan
from npulens.workspace.guiding.guide_state import (
    DONE,
    OPEN,
    RUN,
    Mark,
    change_state,
    read_state,
    today,
)
from npulens.workspace.verifying.outcomes import Status, status
from npulens.workspace.verifying.verification import Verification

_GOOD = (Status.PASSED, Status.LIMIT_REACHED)


def note_run(folder: Path, found: Verification) -> None:
    """Note a run in the state file of its project; there is nothing to do without that file.

    A run that says nothing of the NPU is not noted, and what a person ticked stays.

    Raises:
        GuideStateError: The file cannot be used.
    """
    root = next((each for each in (folder, *folder.parents) if (each / STATE_FILE).is_file()), None)
    ended = status(found.verdict.outcome)
    if root is None or ended not in (*_GOOD, Status.NOT_READY):
        return
    state = DONE if ended in _GOOD else OPEN
    where = found.script or found.verdict.path
    mark = Mark(state, RUN, today(), f"{where}: {ended.value}" if where else ended.value)
    there = read_state(root)
    by_hand = {id_ for id_, each in there.items() if each.by != RUN}
    points = set(_points("any") if found.fixed else (*_points("any"), *_points("migrated")))
    change_state(root, dict.fromkeys(sorted(points - by_hand), mark))


def _points(run: str) -> list[str]:
    """The points that a run of a kind answers."""
    return [each.id for each in guide_plan().points if any(n.run == run for n in each.needs)]
