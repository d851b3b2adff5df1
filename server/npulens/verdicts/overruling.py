"""Reasons that the configuration overrules: what they would settle is found all the same."""

from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Related, ReportedReason
from npulens.catalog.settlements import Settlement
from npulens.text.document import Document
from npulens.verdicts.ledger import Judgement
from npulens.verdicts.reason_wording import why_settled

BY_COMMENT = "suppressed"
"""The reason that comments give. What is found because of another reason, they suppress, too."""


def overruled(
    judged: Judgement, document: Document, reasons: Sequence[ReportedReason]
) -> Judgement:
    """Make findings of what is settled for reasons that settle nothing.

    They have no fixes: what is right where something has to change may be wrong there.
    """
    if not reasons:
        return judged
    by_name = {reason.name: reason for reason in reasons}
    known = {(finding.rule.code, finding.span) for finding in judged.findings}
    findings, settled = [*judged.findings], []
    for finding in judged.settled:
        settlement = finding.settlement
        reason = None if settlement is None else by_name.get(settlement.reason)
        if settlement is None or reason is None:
            settled.append(finding)
        elif (finding.rule.code, finding.span) not in known:
            known.add((finding.rule.code, finding.span))
            findings.append(_reported(finding, settlement, reason, document))
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return Judgement(tuple(findings), tuple(settled))


def _reported(
    finding: Finding, settlement: Settlement, reason: ReportedReason, document: Document
) -> Finding:
    because = why_settled(document, finding.span, settlement, reason.why)
    note = message("check.overruled", because=because)
    related = finding.related
    if settlement.span is not None and settlement.span != finding.span:
        related = (*related, Related(settlement.span, reason.why))
    return replace(
        finding.with_note(note),
        fixes=(),
        severity=reason.severity,
        related=related,
        settlement=None,
        overruled=reason.name,
    )
