"""How much work a finding leaves to a person: an estimate, the same wherever one is shown.

The formula is a sum over findings. Each counts by what there is to do about it:

- a safe fix costs nothing: it is applied by npulens and changes no result;
- an unsafe fix costs the minutes to read it, more where it changes the structure of a script;
- what has no fix costs the minutes of its rule, or else of its family.

Whoever has dealt with a symbol once knows what to do with it: further findings of the same rule
and symbol cost a quarter, at least a minute. So do further findings of the same rule about fused
operators and dynamic shapes, whose symbols are pieces of code.

Errors and warnings keep a program from running as it should; the rest is advice, mostly on speed.

The minutes are set by judgement and measured on nobody. They are for an engineer who knows PyTorch
and has an NPU at hand; running the tests, training and tuning are not in them.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from npulens.catalog.model import Applicability, Finding
from npulens.workspace.problems import is_problem


class EffortClass(str, Enum):
    """The order of magnitude, least first."""

    NONE = "none"
    MINUTES = "minutes"
    HOUR = "hour"
    HALF_DAY = "half-day"
    DAYS = "days"


class Effort(NamedTuple):
    """What a finding costs a person.

    Attributes:
        minutes: Working time, if it is the first of its kind.
        again: Working time, if one of its kind was dealt with before.
        kind: The code of the rule and the symbol; findings with the same are solved alike.
        is_advice: The program runs without that.
    """

    minutes: int
    again: int
    kind: tuple[str, str]
    is_advice: bool

    @property
    def effort_class(self) -> EffortClass:
        """The order of magnitude of `minutes`."""
        return next(each for limit, each in _LIMITS if self.minutes <= limit)


READING_MINUTES = 5
"""To read an unsafe fix of one place."""
STRUCTURE_MINUTES = 30
"""To read one that changes how a script is built: `RULES_OF_STRUCTURE`."""
RULES_OF_STRUCTURE = frozenset({"NPU202", "NPU304", "NPU707", "NPU708", "NPU712"})

FAMILY_MINUTES = {
    "NPU0": 15,
    "NPU1": 15,
    "NPU2": 60,
    "NPU3": 30,
    "NPU4": 15,
    "NPU5": 60,
    "NPU6": 120,
    "NPU7": 30,
    "NPU8": 30,
    "NPU9": 10,
}
"""Without a fix, by the family of the rule."""

RULE_MINUTES = {
    "NPU002": 1,  # a comment goes
    "NPU103": 60,  # another way has to be found
    "NPU202": 120,  # one process for each card: sampler, saving, launcher
    "NPU304": 60,  # apex amp: another API with other defaults
    "NPU503": 120,  # the operator is written with others, or runs on the host
    "NPU601": 1920,  # an extension is built: its kernels are written anew
    "NPU604": 15,  # another build is installed
    "NPU606": 15,  # somebody tries it
    "NPU607": 960,  # operators are ported
    "NPU608": 60,  # a call is led to the ported operator
    "NPU609": 15,  # another command, another library for figures
    "NPU610": 10,  # another name
    "NPU612": 60,  # the uses of an extension are led to the ported one
    "NPU613": 15,  # a look at whether the slower way matters
    "NPU719": 15,  # a look at whether the difference matters
}
"""Without a fix, where the rule is unlike its family."""

_OF_CODE = ("NPU7", "NPU8")
"""Families whose symbols are pieces of code, which are hardly ever the same."""
_LIMITS = (
    (0, EffortClass.NONE),
    (15, EffortClass.MINUTES),
    (60, EffortClass.HOUR),
    (240, EffortClass.HALF_DAY),
    (1 << 30, EffortClass.DAYS),
)
_OTHER_MINUTES = 30
"""A rule of the user's own that has no fix."""


def effort_of(finding: Finding) -> Effort:
    """What a finding costs, as long as its preferred fix is not applied."""
    code = finding.rule.code
    minutes = _minutes(finding)
    again = min(minutes, max(1, minutes // 4))
    symbol = "" if code.startswith(_OF_CODE) else finding.arguments.get("symbol", "")
    return Effort(minutes, again, (code, symbol), not is_problem(finding))


def total_minutes(efforts: Iterable[Effort]) -> int:
    """What findings cost together: the first of each kind whole, the others as repetitions."""
    known: set[tuple[str, str]] = set()
    total = 0
    for effort in efforts:
        total += effort.again if effort.kind in known else effort.minutes
        known.add(effort.kind)
    return total


def _minutes(finding: Finding) -> int:
    code = finding.rule.code
    if finding.fixes:
        if finding.fixes[0].applicability is Applicability.SAFE:
            return 0
        return STRUCTURE_MINUTES if code in RULES_OF_STRUCTURE else READING_MINUTES
    return RULE_MINUTES.get(code, FAMILY_MINUTES.get(code[:4], _OTHER_MINUTES))
