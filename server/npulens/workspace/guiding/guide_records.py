"""A guide as plain data, for programs."""

from typing import Any

from npulens.catalog.model import Language
from npulens.workspace.guiding.guide_evidence import CodePlace
from npulens.workspace.guiding.guide_state import DONE, OPEN, SKIPPED, VERSION
from npulens.workspace.guiding.project_guide import NOT_NEEDED, Guide, GuidePoint

STATES = (DONE, SKIPPED, NOT_NEEDED, OPEN)


def guide_record(guide: Guide, language: Language) -> dict[str, Any]:
    """A guide in a language."""
    following = guide.next
    return {
        "version": VERSION,
        "root": str(guide.root),
        "counts": {state: guide.count(state) for state in STATES},
        "next": None if following is None else following.point.id,
        "phases": [
            {
                "id": phase.phase.id,
                "title": phase.phase.title.in_language(language),
                "points": [_record(point, language) for point in phase.points],
            }
            for phase in guide.phases
        ],
    }


def _record(found: GuidePoint, language: Language) -> dict[str, Any]:
    point = found.point
    evidence = "" if found.evidence is None else found.evidence.in_language(language)
    return {
        "id": point.id,
        "title": point.title.in_language(language),
        "text": point.text.in_language(language),
        "state": found.state,
        "by": found.by or None,
        "when": found.when or None,
        "note": found.note,
        "evidence": evidence,
        "place": None if found.place is None else _place(found.place),
        "command": found.command or None,
        "read": list(point.read),
    }


def _place(place: CodePlace) -> dict[str, Any]:
    return {"path": str(place.path), "line": place.line}
