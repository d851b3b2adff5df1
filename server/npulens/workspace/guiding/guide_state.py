"""What cannot be read from the code of a project: one file that people commit."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.messages import (
    LocalizedError,
    about,
    cannot_be_read,
    cannot_be_written,
    message,
)
from npulens.workspace.files.folders import STATE_FILE
from npulens.workspace.files.writing import NotReplacedError, replace_content, write_whole

VERSION = 1
DONE, SKIPPED, OPEN = "done", "skipped", "open"
HAND, RUN = "hand", "run"
_FIELDS = {"state", "by", "when", "note"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class GuideStateError(LocalizedError):
    """The file cannot be used; the text says which and why."""


class Mark(NamedTuple):
    """What the file says of a point.

    Attributes:
        state: `done`, `skipped`, or `open` where a run failed.
        by: `hand` or `run`.
        when: The day.
        note: Anything a person, or a run, has to say.
    """

    state: str
    by: str
    when: str
    note: str = ""


def today() -> str:
    """The day as marks have it."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def read_state(folder: Path) -> dict[str, Mark]:
    """The marks of a project by the ids of their points; none without the file.

    Raises:
        GuideStateError: The file cannot be read or is damaged.
    """
    return _marks_of(folder / STATE_FILE)[0]


def change_state(folder: Path, changes: Mapping[str, Mark | None]) -> None:
    """Put marks into the file of a project, or take them out (`None`); the others stay.

    Raises:
        GuideStateError: The file cannot be read or written, or is damaged.
    """
    path = folder / STATE_FILE
    marks, before = _marks_of(path)
    changed = {**marks, **changes}
    kept = {id_: mark for id_, mark in changed.items() if mark is not None}
    if kept != marks or before is None:
        _write(path, before, as_text(kept))


def as_text(marks: Mapping[str, Mark]) -> str:
    """The text of the file, the same for the same marks."""
    points = {id_: mark._asdict() for id_, mark in marks.items()}
    content = {"version": VERSION, "points": points}
    return json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def marks_by_hand(
    done: Iterable[str], skipped: Iterable[str], opened: Iterable[str], note: str = ""
) -> dict[str, Mark | None]:
    """The changes that a user asks for."""
    day = today()
    changes: dict[str, Mark | None] = dict.fromkeys(opened)
    for state, ids in ((DONE, done), (SKIPPED, skipped)):
        changes.update((id_, Mark(state, HAND, day, note)) for id_ in ids)
    return changes


def _marks_of(path: Path) -> tuple[dict[str, Mark], bytes | None]:
    """The marks in a file, and its bytes; `None` if it is not there."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}, None
    except OSError as error:
        raise GuideStateError(about(str(path), cannot_be_read(error))) from error
    try:
        return _marks(json.loads(data)), data
    except (ValueError, RecursionError) as error:
        raise GuideStateError(message("guide.damaged", file=path)) from error


def _marks(content: Any) -> dict[str, Mark]:
    if not isinstance(content, dict) or content.keys() != {"version", "points"}:
        raise ValueError
    points = content["points"]
    if content["version"] != VERSION or not isinstance(points, dict):
        raise ValueError
    return {id_: _mark(value) for id_, value in points.items()}


def _mark(value: Any) -> Mark:
    if not isinstance(value, dict) or not {"state", "by", "when"} <= value.keys() <= _FIELDS:
        raise ValueError
    if not all(isinstance(text, str) for text in value.values()):
        raise ValueError
    mark = Mark(**value)
    is_known = mark.state in (DONE, SKIPPED, OPEN) and mark.by in (HAND, RUN)
    if not is_known or not _DAY.fullmatch(mark.when):
        raise ValueError
    return mark


def _write(path: Path, before: bytes | None, text: str) -> None:
    try:
        if before is None:
            write_whole(path, text.encode())
        else:
            replace_content(path, before, text.encode())
    except NotReplacedError as error:
        raise GuideStateError(about(str(path), error.text)) from error
    except OSError as error:
        raise GuideStateError(about(str(path), cannot_be_written(error))) from error
