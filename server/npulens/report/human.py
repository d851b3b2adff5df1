"""Findings for people at a terminal: the place, the message, the line with the fault underlined."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import click

from npulens.catalog.message_ids import MessageTable
from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Applicability, Finding, Language, Severity
from npulens.fixes.written_lines import writes_module, written_lines
from npulens.report.formats import Report
from npulens.report.report_wording import Totals, with_lines
from npulens.text.document import Document
from npulens.text.places import place_at, shown_place
from npulens.text.spans import Span

_COLOURS = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFO: "blue",
    Severity.HINT: "cyan",
}
_TAB_WIDTH = 4
_MOST_WRITTEN = 3
_MOST_BEFORE = 60
_MOST_SHOWN = 160
"""Of a long line, so many characters around the fault."""


class HumanReport(Report):
    """Text for a terminal, or for a file to be read."""

    def __init__(self, language: Language, colour: bool = False) -> None:
        super().__init__(language)
        self._colour = colour
        self._totals = Totals()

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        self._totals.add(findings)
        return "".join(self._finding(document, finding) for finding in findings)

    def end(self, checked: int) -> str:
        return self._style(self._totals.line(checked, self._language), bold=True) + "\n"

    def _finding(self, document: Document, finding: Finding) -> str:
        line = place_at(document, finding.span.start).line
        place = shown_place(document, finding.span.start)
        severity = finding.effective_severity
        colour = _COLOURS[severity]
        heading = " ".join(
            [
                self._style(f"{printable(document.path)}:{place}:", bold=True),
                self._style(self._named("severity", severity), fg=colour, bold=True),
                self._style(finding.rule.code, fg=colour),
                f"{finding.rule.name}: {printable(finding.message(self._language))}",
            ]
        )
        lines = [heading]
        margin = " " * (len(str(line)) + 1)
        if document.text:
            source, carets = underlined(document, finding.span)
            bar = self._style("|", fg="blue")
            lines.append(f" {self._style(str(line), fg='blue')} {bar} {source}".rstrip())
            lines.append(f" {margin}{bar} {self._style(carets, fg=colour, bold=True)}")
        if finding.related and not finding.overruled:  # the message has the line
            places = [place_at(document, part.span.start)[0] for part in finding.related]
            shown = with_lines(places, self._language)
            lines.append(f" {margin}{self._style('=', fg='blue')} {shown}")
        if finding.fixes:
            fix = finding.fixes[0]
            title = printable(fix.title.in_language(self._language))
            kind = self._named("report-fix", fix.applicability)
            word = message("report.help").in_language(self._language)
            word = self._style(f"{word}:", fg="green", bold=True)
            lines.append(f" {margin}{self._style('=', fg='blue')} {word} {title} ({kind})")
            lines += self._written(document, finding, margin)
        return "\n".join(lines) + "\n\n"

    def _written(self, document: Document, finding: Finding, margin: str) -> Iterator[str]:
        bar = self._style("|", fg="blue")
        for line in lines_as_written(document, finding, self._language):
            yield f" {margin}{bar} {self._style(line, fg='green')}"

    def _named(self, table: MessageTable, member: Severity | Applicability) -> str:
        return message_of(table, member.value).in_language(self._language)

    def _style(self, text: str, fg: str | None = None, bold: bool | None = None) -> str:
        return click.style(text, fg=fg, bold=bold) if self._colour else text


def lines_as_written(document: Document, finding: Finding, language: Language) -> list[str]:
    """What a fix of a whole module writes in the line of a finding; of others the title tells."""
    if not document.text or not finding.fixes or not writes_module(finding.fixes[0]):
        return []
    written = written_lines(document.text, finding.fixes[0], finding.span)
    shown = [printable(line) for line in written[:_MOST_WRITTEN]]
    return shown or [message("report.line-goes").in_language(language)]


def underlined(document: Document, span: Span) -> tuple[str, str]:
    """The line in which a span starts, as a terminal shows it, and the carets below it.

    Carets are below the part of the span that is in this line; an empty span has one.
    """
    text, starts = document.text, document.line_starts
    line = bisect_right(starts, span.start)
    first = max(starts[line - 1], span.start - _MOST_BEFORE)
    last = starts[line] if line < len(starts) else len(text)
    cut = min(last, first + _MOST_SHOWN)
    before = "…" if first > starts[line - 1] else ""
    after = "…" if text[cut : min(cut + 1, last)].strip("\r\n") else ""

    cells = _cells(text[first:cut].rstrip("\r\n"))
    start, end = span.start - first, span.end - first
    source = before + "".join(cell for cell, _ in cells) + after
    indent = len(before) + sum(width for _, width in cells[:start])
    carets = max(sum(width for _, width in cells[start:end]), 1)
    return source, " " * indent + "^" * carets


def printable(text: str) -> str:
    """The text without what would command the terminal instead of being shown."""
    return "".join(cell for cell, _ in _cells(text))


def _cells(text: str) -> list[tuple[str, int]]:
    """What a terminal shows for each character, and how many columns that takes."""
    cells: list[tuple[str, int]] = []
    column = 0
    for character in text:
        cell, width = character, 1
        if character == "\t":
            width = _TAB_WIDTH - column % _TAB_WIDTH
            cell = " " * width
        elif not " " <= character <= "~":
            cell, width = _uncommon_cell(character)
        cells.append((cell, width))
        column += width
    return cells


def _uncommon_cell(character: str) -> tuple[str, int]:
    category = unicodedata.category(character)
    if character < " ":
        return chr(ord("␀") + ord(character)), 1
    if category in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in _BIDI:
        return "�", 1
    if category in ("Mn", "Me", "Cf"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


_BIDI = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Characters that show a line in another order than Python reads it."""
