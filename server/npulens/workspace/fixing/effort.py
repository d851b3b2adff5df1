"""How much work a finding leaves to a person: an estimate, the same wherever one is shown.

The formula is a sum over findings. Each counts by what there is to do about it:

- a safe fix costs nothing: it is applied by npulens and changes no result;
- an unsafe fix costs the minutes to read it, more where it changes the structure of a script;
- what has no fix costs the minutes of its rule. Both are in the file of the rule.

Whoever has dealt with a symbol once knows what to do with it: further findings of the same rule
and symbol cost a quarter, at least a minute. So do further findings of the same rule about fused
operators and dynamic shapes, whose symbols are pieces of code.

Errors and warnings keep a program from running as it should; the rest is advice, mostly on speed.

The minutes are set by judgement and measured on nobody. They are for an engineer who knows PyTorch
and has an NPU at hand; running the tests, training and tuning are not in them.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from statistics import mode
from typing import NamedTuple

from npulens.catalog.model import Applicability, Finding, Rule
from npulens.workspace.settings.problems import is_problem


class EffortClass(str, Enum):
    """The order of magnitude, least first."""

    NONE = "none"
    MINUTES = "minutes"
    HOUR = "hour"
    HALF_DAY = "half-day"
    DAYS = "days"


class Formula(NamedTuple):
    """The figures that the rules bring along, for those who want to know how they came about.

    Attributes:
        reading: The minutes for an unsafe fix of most rules.
        structure: Those for one that changes how a script is built.
        structure_rules: The codes of the rules that have such fixes.
        families: By the start of a code, the minutes of most of its rules without a fix.
        rules: By the code of a rule, its minutes without a fix, where they are others.
    """

    reading: int
    structure: int
    structure_rules: tuple[str, ...]
    families: Mapping[str, int]
    rules: Mapping[str, int]


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


_FAMILY = len("NPU1")
"""How much of a code says the family."""
_OF_CODE = frozenset({"fused", "dynamic"})
"""Families whose symbols are pieces of code, which are hardly ever the same."""
_LIMITS = (
    (0, EffortClass.NONE),
    (15, EffortClass.MINUTES),
    (60, EffortClass.HOUR),
    (240, EffortClass.HALF_DAY),
    (1 << 30, EffortClass.DAYS),
)


def effort_of(finding: Finding) -> Effort:
    """What a finding costs, as long as its preferred fix is not applied."""
    code = finding.rule.code
    minutes = _minutes(finding)
    again = min(minutes, max(1, minutes // 4))
    symbol = "" if finding.rule.family in _OF_CODE else finding.arguments.get("symbol", "")
    return Effort(minutes, again, (code, symbol), not is_problem(finding))


def formula_of(rules: Iterable[Rule]) -> Formula:
    """The figures of the shipped rules among some."""
    shipped = sorted((r for r in rules if r.code.startswith("NPU")), key=lambda rule: rule.code)
    reading = mode(rule.fix_minutes for rule in shipped)
    structural = [rule for rule in shipped if rule.fix_minutes != reading]
    members: dict[str, list[int]] = {}
    for rule in shipped:
        members.setdefault(rule.code[:_FAMILY], []).append(rule.minutes)
    families = {start: mode(minutes) for start, minutes in members.items()}
    return Formula(
        reading,
        max((rule.fix_minutes for rule in structural), default=reading),
        tuple(rule.code for rule in structural),
        families,
        {r.code: r.minutes for r in shipped if r.minutes != families[r.code[:_FAMILY]]},
    )


def minutes_in_turn(efforts: Iterable[Effort]) -> Iterator[int]:
    """What each of some findings costs after those before it: the first of a kind costs most."""
    known: set[tuple[str, str]] = set()
    for effort in efforts:
        yield effort.again if effort.kind in known else effort.minutes
        known.add(effort.kind)


def _minutes(finding: Finding) -> int:
    if not finding.fixes:
        return finding.rule.minutes
    is_safe = finding.fixes[0].applicability is Applicability.SAFE
    return 0 if is_safe else finding.rule.fix_minutes
