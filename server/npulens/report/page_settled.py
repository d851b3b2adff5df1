"""What a page says of places where nothing is to be done: how many for which reason, and where."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding, Language
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.report.human import printable
from npulens.report.page_model import (
    CodePlace,
    FileRow,
    ReasonRow,
    Settled,
    SettledFile,
    SettledPlace,
)
from npulens.text.document import Document
from npulens.text.places import file_line, shown_place
from npulens.text.spans import Span
from npulens.verdicts.reason_wording import shortened
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.run import document_of

MOST_PLACES = 1_000
"""More are not listed one by one, so that browsers can open the page."""


def settled_of(
    reports: Sequence[FileReport], rows: Sequence[FileRow], language: Language
) -> Settled:
    """What is settled in the files of a page."""
    files: list[SettledFile] = []
    room = MOST_PLACES
    for report, row in zip(reports, rows, strict=True):
        listed = report.settled[:room]
        document = (report.document or document_of(report.path)) if listed else None
        if document is not None:
            places = tuple(_place(document, finding, language) for finding in listed)
            files.append(SettledFile(row, len(report.settled), places))
            room -= len(places)
    total = sum(len(report.settled) for report in reports)
    return Settled(total, MOST_PLACES - room, tuple(_reasons(reports, language)), tuple(files))


def _reasons(reports: Sequence[FileReport], language: Language) -> Iterator[ReasonRow]:
    """The reasons, the most frequent first."""
    places: Counter[str] = Counter()
    files: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        for finding in report.settled:
            if finding.settlement is not None:
                places[finding.settlement.reason] += 1
                files[finding.settlement.reason].add(report.path)
    for reason, number in sorted(places.items(), key=lambda item: (-item[1], item[0])):
        why = read_reasons(rules_folder())[reason].why.in_language(language)
        yield ReasonRow(reason, why, number, len(files[reason]))


def _place(document: Document, finding: Finding, language: Language) -> SettledPlace:
    settlement = finding.settlement
    assert settlement is not None
    why = read_reasons(rules_folder())[settlement.reason].why.in_language(language)
    is_elsewhere = settlement.span is not None and settlement.span != finding.span
    decides = _code_at(document, settlement.span) if settlement.span and is_elsewhere else None
    return SettledPlace(_code_at(document, finding.span), why, decides)


def _code_at(document: Document, span: Span) -> CodePlace:
    place = shown_place(document, span.start).rpartition(":")[0]
    return CodePlace(file_line(document, span.start), place, printable(shortened(document, span)))
