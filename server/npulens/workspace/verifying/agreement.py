"""Static findings of dynamic shapes beside what a run saw."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from npulens.analysis import analyze_shapes
from npulens.catalog.tables import Catalogue
from npulens.workspace.verifying.original_lines import document_in
from npulens.workspace.verifying.outcomes import Site


class Agreement(Enum):
    """What analysis and run say of a place."""

    CONFIRMED = "confirmed"
    """Both saw it."""
    NOT_SEEN = "not-seen"
    """Analysis found it; the run did not come there, or nothing happened."""
    MISSED = "missed"
    """The run saw it alone."""


@dataclass(frozen=True, slots=True)
class AgreedPlace:
    """One line.

    Attributes:
        path: Relative to the folder of the project.
        line: The first line, from 1.
        cell: In a notebook the cell, from 1, from whose start the line counts.
    """

    agreement: Agreement
    path: str
    line: int
    codes: tuple[str, ...]
    sites: tuple[Site, ...]
    cell: int | None = None


def agree(
    folder: Path, files: Iterable[str], catalogue: Catalogue, seen: Sequence[Site]
) -> list[AgreedPlace]:
    """Put findings and observations of files side by side."""
    found: list[AgreedPlace] = []
    covered: set[Site] = set()
    spans: dict[tuple[str, int, int], set[str]] = {}
    for path in files:
        for first, last, code in _findings(folder, path, catalogue):
            spans.setdefault((path, first, last), set()).add(code)
    for (path, first, last), codes in spans.items():
        here = [site for site in seen if site.path == path and first <= site.line <= last]
        covered.update(here)
        agreement = Agreement.CONFIRMED if here else Agreement.NOT_SEEN
        found.append(AgreedPlace(agreement, path, first, tuple(sorted(codes)), tuple(here)))
    missed: dict[tuple[str, int], list[Site]] = {}
    for site in seen:
        if site not in covered:
            missed.setdefault((site.path, site.line), []).append(site)
    for (path, line), sites in missed.items():
        found.append(AgreedPlace(Agreement.MISSED, path, line, (), tuple(sites)))
    return sorted(found, key=lambda each: (each.path, each.line, each.agreement.value))


def _findings(folder: Path, path: str, catalogue: Catalogue) -> Iterator[tuple[int, int, str]]:
    """The first and last line of each finding in a file, and its rule; lines are those of a run."""
    document = document_in(folder, path)
    if document is None:
        return
    for ranked in analyze_shapes(document, catalogue).ranked:
        rule = catalogue.rule_named(ranked.hotspot.rule)
        if rule is not None:
            span = ranked.hotspot.span
            first, last = (document.position_at(at).line + 1 for at in (span.start, span.end))
            yield first, last, rule.code
