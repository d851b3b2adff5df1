"""What is settled and why, in each language: in one line, and a line for each place."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from npulens.catalog.messages import message, message_of, plural
from npulens.catalog.model import Finding, Language
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.report.human import lines_as_written, printable
from npulens.text.document import Document
from npulens.text.places import place_at, shown_place
from npulens.verdicts.reason_wording import shortened, why_settled

_MOST_REASONS = 4
"""So many reasons are counted by name in one line; the rest are others."""


def settled_line(reasons: Counter[str], language: Language) -> str:
    """How many places are settled and for which reasons; empty if none is."""
    total = sum(reasons.values())
    if not total:
        return ""
    wordings = read_reasons(rules_folder())
    counts = [
        f"{count} {wordings[name].counted.in_language(language)}"
        for name, count in reasons.most_common(_MOST_REASONS)
    ]
    rest = total - sum(count for _, count in reasons.most_common(_MOST_REASONS))
    if rest:
        counts.append(message("report.other-reasons", number=rest).in_language(language))
    listed = message("punctuation.comma").in_language(language).join(counts)
    return plural("report.settled", total, reasons=listed).in_language(language) + "\n"


def settled_lines(document: Document, settled: Sequence[Finding], language: Language) -> str:
    """A line for each place: where, what, and why nothing is to be done."""
    return "".join(_line(document, finding, language) for finding in settled)


def _line(document: Document, finding: Finding, language: Language) -> str:
    place = shown_place(document, finding.span.start)
    rule = finding.rule
    word = message("report.settled-word").in_language(language)
    text = printable(settled_text(document, finding, language))
    return f"{printable(document.path)}:{place}: {word} {rule.code} {rule.name}: {text}\n"


def settled_text(document: Document, finding: Finding, language: Language) -> str:
    """The code of a settled place, and why nothing is to be done about it."""
    why = reason_text(document, finding, language)
    return f"`{shortened(document, finding.span)}`: {why}"


def reason_text(document: Document, finding: Finding, language: Language) -> str:
    """Why nothing is to be done about a place, with what decides."""
    settlement = finding.settlement
    if settlement is None:
        return ""
    why = read_reasons(rules_folder())[settlement.reason].why
    return why_settled(document, finding.span, settlement, why).in_language(language)


def explained_line(
    document: Document, line: int, found: Sequence[Finding], language: Language
) -> str:
    """What is known of one line: its findings, what is settled and why, or that nothing is."""
    here = [
        finding
        for finding in found
        if place_at(document, finding.span.start).line
        <= line
        <= place_at(document, max(finding.span.end - 1, finding.span.start)).line
    ]
    if not here:
        nothing = message("report.nothing-in-line").in_language(language)
        return f"{printable(document.path)}:{line}: {nothing}\n"
    return "".join(_explained(document, finding, language) for finding in here)


def _explained(document: Document, finding: Finding, language: Language) -> str:
    if finding.settlement is not None:
        return _line(document, finding, language)
    place = shown_place(document, finding.span.start)
    severity = message_of("severity", finding.effective_severity.value).in_language(language)
    rule, shown = finding.rule, printable(finding.message(language))
    heading = f"{printable(document.path)}:{place}: {severity} {rule.code} {rule.name}: {shown}\n"
    written = lines_as_written(document, finding, language)
    if not written:
        return heading
    word = message("report.help").in_language(language)
    title = finding.fixes[0].title.in_language(language)
    return "".join([heading, f"  {word}: {title}\n", *(f"  | {line}\n" for line in written)])


def settled_record(document: Document, finding: Finding, language: Language) -> dict[str, Any]:
    """The fields that a settled place has besides those of a finding."""
    settlement = finding.settlement
    because = None
    if settlement is not None and settlement.span is not None:
        line, column = place_at(document, settlement.span.start)
        because = {"line": line, "column": column}
    return {
        "verdict": "settled",
        "reason": "" if settlement is None else settlement.reason,
        "reason_text": reason_text(document, finding, language),
        "because": because,
    }
