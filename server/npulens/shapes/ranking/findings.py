"""Hotspots as findings."""

from collections.abc import Iterable, Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import DynamicShape, Finding, LocalizedText, Related
from npulens.catalog.tables import Catalogue
from npulens.shapes.ranking.hotspots import Ranked
from npulens.shapes.ranking.scoring import REPORTED, Reach, severity_of


def findings_of(ranked: Iterable[Ranked], catalogue: Catalogue) -> Iterator[Finding]:
    """A finding for each hotspot that is worth reporting."""
    for each in ranked:
        if each.score < REPORTED:
            continue
        hotspot = each.hotspot
        rule = catalogue.rule_named(hotspot.rule)
        if rule is None:
            continue
        yield Finding(
            rule,
            hotspot.span,
            {"symbol": hotspot.symbol},
            note_of(hotspot.advice),
            hotspot.fixes,
            severity=severity_of(each.score),
            related=tuple(Related(span, message("shape.used-here")) for _, span in hotspot.used),
            dynamic_shape=DynamicShape(
                each.score,
                hotspot.function,
                reached(each.reach),
                hotspot.is_shape,
                hotspot.synchronizes,
                hotspot.advice,
            ),
        )


def reached(reach: Reach) -> str:
    """From where a function is reached, in a word."""
    return "training" if reach.is_hot else "evaluation" if reach.is_cold else "unknown"


def note_of(advice: LocalizedText) -> LocalizedText:
    """What is better, as a sentence."""
    return message("shape.better", advice=advice)
