"""Hotspots as findings."""

from collections.abc import Iterable, Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import DynamicShape, Finding, LocalizedText, Related
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Catalogue
from npulens.shapes.ranking.hotspots import Ranked
from npulens.shapes.ranking.scoring import REPORTED, Reach, severity_of

_ON_HOST = Settlement("on-host")


def findings_of(ranked: Iterable[Ranked], catalogue: Catalogue) -> Iterator[Finding]:
    """A finding for each hotspot that is worth reporting.

    What only very likely happens to a tensor counts where training or a forward pass leads to it.
    """
    for each in ranked:
        hotspot = each.hotspot
        if not (hotspot.is_sure or each.reach.is_hot):
            continue
        if each.score < REPORTED and not each.reach.is_on_host:
            continue
        rule = catalogue.rule_named(hotspot.rule)
        if rule is None:
            continue
        yield Finding(
            rule,
            hotspot.span,
            {"symbol": hotspot.symbol},
            note_of(hotspot.advice, is_sure=hotspot.is_sure),
            hotspot.fixes,
            severity=severity_of(each.score),
            settlement=_ON_HOST if each.reach.is_on_host else None,
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
    if reach.is_on_host:
        return "host"
    return "training" if reach.is_hot else "evaluation" if reach.is_cold else "unknown"


def note_of(advice: LocalizedText, *, is_sure: bool) -> LocalizedText:
    """What is better, as a sentence, and whether the code shows that it is about a tensor."""
    return message("shape.better" if is_sure else "shape.better-if-tensor", advice=advice)
