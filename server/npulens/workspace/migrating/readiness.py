"""How far files are from running on the NPU, by what is found in them."""

from collections.abc import Iterable
from enum import Enum

from npulens.catalog.model import Applicability, Finding, Severity
from npulens.workspace.settings.problems import is_problem

_ENGINE = "engine"


class Readiness(str, Enum):
    """What has to happen before a file runs on the NPU as it does on the GPU.

    Attributes:
        AS_IS: Nothing: no finding of it is work.
        SAFE: Its safe fixes are applied.
        REVIEW: Somebody reads an unsafe fix, or looks at a warning that has no fix.
        BLOCKED: Somebody writes code: an error has no fix, or CUDA code has to be ported.
        UNKNOWN: It, or a part of it, could not be read, and the rest is not blocked.
        OTHER: It does not use PyTorch, so there is nothing that could fail.
    """

    AS_IS = "as-is"
    SAFE = "safe"
    REVIEW = "review"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    OTHER = "other"


_WORST_FIRST = (Readiness.BLOCKED, Readiness.UNKNOWN, Readiness.REVIEW, Readiness.SAFE)


def worst_of(states: Iterable[Readiness]) -> Readiness:
    """The state of a program that consists of files in these states."""
    found = frozenset(states)
    return next((state for state in _WORST_FIRST if state in found), Readiness.AS_IS)


def is_work(finding: Finding) -> bool:
    """Whether a problem is one of the code, and not that a part of it could not be looked at."""
    return is_problem(finding) and finding.rule.family != _ENGINE


def is_blocker(finding: Finding) -> bool:
    """Whether only new code helps."""
    is_error = finding.effective_severity is Severity.ERROR
    return is_work(finding) and not finding.fixes and (is_error or finding.rule.by_hand)


def readiness_of(findings: Iterable[Finding]) -> Readiness:
    """The state of a file with these findings."""
    findings = tuple(findings)
    work = [finding for finding in findings if is_work(finding)]
    if any(map(is_blocker, work)):
        return Readiness.BLOCKED
    if any(finding.rule.unread for finding in findings):
        return Readiness.UNKNOWN
    if not work:
        return Readiness.AS_IS
    return Readiness.SAFE if all(map(_is_safe, work)) else Readiness.REVIEW


def _is_safe(finding: Finding) -> bool:
    return bool(finding.fixes) and finding.fixes[0].applicability is Applicability.SAFE
