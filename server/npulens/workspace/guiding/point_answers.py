"""The kinds of answers: whether what a point needs holds in a project, and what shows it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.messages import message, plural
from npulens.catalog.model import Applicability, Finding, LocalizedText
from npulens.workspace.guiding.guide_evidence import CodePlace, GuideEvidence
from npulens.workspace.guiding.guide_points import Need
from npulens.workspace.migrating.readiness import is_blocker, is_work
from npulens.workspace.settings.problems import is_problem

_ENGINE = "engine"
_OF_TOOLS = {"results"}
"""The fields that ask nothing of the code."""


class Answer(NamedTuple):
    """Whether something holds, and what shows it, or what is in the way, with the line of that."""

    holds: bool
    evidence: LocalizedText | None = None
    place: CodePlace | None = None


def all_hold(needs: Iterable[Need], evidence: GuideEvidence) -> Answer:
    """Whether all needs hold; the evidence is that of the first that does not, or of the last."""
    answer = Answer(True)
    for need in needs:
        answer = any_holds(need, evidence)
        if not answer.holds:
            break
    return answer


def any_holds(need: Need, evidence: GuideEvidence) -> Answer:
    """Whether any part of a need holds; of what does not, the first evidence."""
    asked = [field for field in _KINDS if getattr(need, field)]
    if not evidence.uses_torch:
        asked = [field for field in asked if field in _OF_TOOLS]
        if not asked:
            return Answer(False, message("guide.no-pytorch"))
    answers = [_KINDS[field](need, evidence) for field in asked]
    holding = next((each for each in answers if each.holds), None)
    if holding is not None:
        return holding
    return next((each for each in reversed(answers) if each.evidence is not None), Answer(False))


# The kinds


def _findings(need: Need, evidence: GuideEvidence) -> Answer:
    fits = _FITTING[need.findings]

    def is_wanted(finding: Finding) -> bool:
        rule = finding.rule
        if need.families and rule.family not in need.families:
            return False
        if need.rules and rule.name not in need.rules:
            return False
        return rule.family != _ENGINE and fits(finding)

    found = evidence.counted(each for each in evidence.findings() if is_wanted(each[1]))
    if found.first is None:
        return Answer(True, message("guide.no-findings"))
    place = _shown(found.first, evidence)
    text = plural("guide.findings", found.number, place=place)
    return Answer(False, text, found.first)


def _names(need: Need, evidence: GuideEvidence) -> Answer:
    return _in_code(need.names, evidence.names_in(only_reached=need.reached), evidence)


def _strings(need: Need, evidence: GuideEvidence) -> Answer:
    return _in_code(need.strings, evidence.names_in(only_reached=need.reached), evidence)


def _instruments(need: Need, evidence: GuideEvidence) -> Answer:
    return _in_code(need.instruments, evidence.instruments, evidence)


def _in_code(
    names: Iterable[str], places: Mapping[str, CodePlace], evidence: GuideEvidence
) -> Answer:
    for name in names:
        if name in places:
            return _used(True, name, places[name], evidence)
    return Answer(False, message("guide.not-seen"))


def _without_instruments(need: Need, evidence: GuideEvidence) -> Answer:
    for name in need.without_instruments:
        place = evidence.instruments.get(name)
        if place is not None:
            return _used(False, name, place, evidence)
    return Answer(True, message("guide.no-instruments"))


def _written(need: Need, evidence: GuideEvidence) -> Answer:
    place = evidence.written(need.written, need.kinds)
    if place is None:
        return Answer(False, message("guide.not-written"))
    return Answer(True, message("guide.written", place=_shown(place, evidence)), place)


def _training(need: Need, evidence: GuideEvidence) -> Answer:
    found = evidence.training
    if found.understood:
        first = found.understood[0]
        place = CodePlace(first.path, first.line)
        text = plural("guide.trains", len(found.understood), place=_shown(place, evidence))
        return Answer(True, text, place)
    for other in found.others:
        place = CodePlace(other.path, other.line)
        words = {"place": _shown(place, evidence), "problem": other.problem}
        return Answer(False, message("guide.not-understood", **words), place)
    if found.sign is None:
        return Answer(False)
    place = CodePlace(found.sign.path, found.sign.line)
    return Answer(False, message("guide.loop-unknown", place=_shown(place, evidence)), place)


def _trains(need: Need, evidence: GuideEvidence) -> Answer:
    if evidence.training.sign is None:
        return Answer(False, message("guide.no-training"))
    return Answer(True)


def _results(need: Need, evidence: GuideEvidence) -> Answer:
    for pattern in need.results:
        path = evidence.results.get(pattern)
        if path is not None:
            return Answer(True, message("guide.result", path=path.as_posix()))
    return Answer(False)


_KINDS: Mapping[str, Callable[[Need, GuideEvidence], Answer]] = {
    "findings": _findings,
    "instruments": _instruments,
    "names": _names,
    "strings": _strings,
    "written": _written,
    "without_instruments": _without_instruments,
    "training": _training,
    "trains": _trains,
    "results": _results,
}
"""By the field of a need that asks it. Runs are in the state file alone."""


def _has_fix(finding: Finding, *kinds: Applicability) -> bool:
    return bool(finding.fixes) and finding.fixes[0].applicability in kinds


def _is_advice(finding: Finding) -> bool:
    return not is_problem(finding)


_FITTING: Mapping[str, Callable[[Finding], bool]] = {
    "safe": lambda each: is_work(each) and _has_fix(each, Applicability.SAFE),
    "unsafe": lambda each: is_work(each) and _has_fix(each, Applicability.UNSAFE),
    "manual": lambda each: is_work(each) and not each.fixes,
    "blockers": is_blocker,
    "work": is_work,
    "advice": _is_advice,
    "any": lambda each: True,
}


def _used(holds: bool, name: str, place: CodePlace, evidence: GuideEvidence) -> Answer:
    text = message("guide.in-code", name=name, place=_shown(place, evidence))
    return Answer(holds, text, place)


def _shown(place: CodePlace, evidence: GuideEvidence) -> str:
    path = place.path
    inside = path.relative_to(evidence.root) if path.is_relative_to(evidence.root) else path
    return f"{Path(inside).as_posix()}:{place.line}"
