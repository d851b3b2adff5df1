"""Static findings of dynamic shapes beside what a run saw."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from npulens.catalog.tables import Catalogue
from npulens.text.places import place_at
from npulens.workspace.shape_run import places_in
from npulens.workspace.verifying.verdicts import Site


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
        agreement: Who saw it.
        path: Relative to the folder of the project.
        line: The first line, from 1.
        codes: The rules of the findings there.
        sites: What the run saw there.
    """

    agreement: Agreement
    path: str
    line: int
    codes: tuple[str, ...]
    sites: tuple[Site, ...]


def agree(
    folder: Path, files: Iterable[str], catalogue: Catalogue, seen: Sequence[Site]
) -> list[AgreedPlace]:
    """Put findings and observations of files side by side.

    Args:
        folder: The project that was run.
        files: The paths below it of the files that were run or imported.
        catalogue: The rules.
        seen: What the run saw.
    """
    paths = [folder / file for file in files]
    found: list[AgreedPlace] = []
    covered: set[Site] = set()
    spans: dict[tuple[str, int, int], set[str]] = {}
    for place in places_in(paths, catalogue).places:
        span = place.ranked.hotspot.span
        path = Path(place.document.path).relative_to(folder).as_posix()
        first, last = (place_at(place.document, at)[0] for at in (span.start, span.end))
        spans.setdefault((path, first, last), set()).add(place.rule.code)
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
