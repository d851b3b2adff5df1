"""What counts as a problem and what as advice, for every face that counts."""

from collections.abc import Iterable
from typing import NamedTuple

from npulens.catalog.model import Applicability, Finding, Severity

_SPEED = "dynamic"
"""A dynamic shape costs time, whatever its severity; it keeps nothing from running."""


class Counts(NamedTuple):
    """How many findings there are.

    Attributes:
        problems: Those that have to be changed before code runs as it should.
        safe: Those of them with a safe fix.
    """

    problems: int
    safe: int
    advice: int


def is_problem(finding: Finding) -> bool:
    """Whether a finding has to be changed before code runs as it should; all others are advice."""
    is_grave = finding.effective_severity in (Severity.ERROR, Severity.WARNING)
    return is_grave and finding.rule.family != _SPEED


def counts_of(findings: Iterable[Finding]) -> Counts:
    """How many findings there are of each kind."""
    problems = safe = advice = 0
    for finding in findings:
        if is_problem(finding):
            problems += 1
            safe += bool(finding.fixes) and finding.fixes[0].applicability is Applicability.SAFE
        else:
            advice += 1
    return Counts(problems, safe, advice)
