"""Every occurrence with its verdict: what has to be looked at, and what is settled and why."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from npulens.catalog.model import Finding
from npulens.catalog.settlements import Settlement


class Judgement(NamedTuple):
    """What is known of one document.

    Attributes:
        findings: What somebody has to look at, in order of place.
        settled: What belongs to NVIDIA's world and needs nothing, each with its settlement.
    """

    findings: Sequence[Finding]
    settled: Sequence[Finding] = ()


class Ledger:
    """What is found in one document while it is judged: nothing is lost on the way.

    Attributes:
        open: What is not settled yet.
        settled: What is, each with its settlement.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.open: list[Finding] = []
        self.settled: list[Finding] = []
        for finding in findings:
            (self.open if finding.settlement is None else self.settled).append(finding)

    def settle(self, kept: Iterable[Finding], reason: str) -> None:
        """Go on with some of the open findings; those that are not among them are settled.

        Args:
            kept: What stays open; a finding may have been changed, but for its rule and place.
            reason: Why the others are settled, unless a finding has its own settlement.
        """
        staying = [finding for finding in kept if finding.settlement is None]
        if len(staying) == len(self.open):
            self.open = staying
            return
        known = {(finding.rule.family, finding.span) for finding in staying}
        for finding in self.open:
            if (finding.rule.family, finding.span) not in known:
                own = finding.settlement or Settlement(reason)
                self.settled.append(replace(finding, settlement=own))
        self.open = staying

    def replace_open(self, findings: Iterable[Finding]) -> None:
        """Go on with findings in the place of the open ones; some may be settled by now."""
        found = Ledger(findings)
        self.open = found.open
        self.settled += found.settled

    def in_order(self) -> list[Finding]:
        """What is settled, in order of place."""
        return sorted(self.settled, key=lambda finding: (finding.span, finding.rule.code))
