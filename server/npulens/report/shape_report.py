"""The ranked list of dynamic shapes: as a table, as JSON, as CSV."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npulens.catalog.messages import message
from npulens.catalog.model import Language
from npulens.report.human import printable
from npulens.report.json_text import json_text
from npulens.shapes.ranking.findings import note_of, reached
from npulens.text.places import place_at
from npulens.workspace.runs.shape_run import Place

FIELDS = (
    *("rank", "score", "path", "line", "column", "end_line", "end_column", "code", "name"),
    *("kind", "confidence", "function", "reached", "symbol", "why", "uses"),
)
"""The columns of CSV and the keys of JSON."""


def record_of(rank: int, place: Place, language: Language) -> dict[str, Any]:
    """One place as plain data; `uses` are the lines that work on what comes of it."""
    document, ranked = place.document, place.ranked
    hotspot = ranked.hotspot
    line, column = place_at(document, hotspot.span.start)
    end_line, end_column = place_at(document, hotspot.span.end)
    uses = sorted({place_at(document, span.start)[0] for _, span in hotspot.used})
    values = (
        *(rank, ranked.score, document.path, line, column, end_line, end_column),
        *(
            place.rule.code,
            place.rule.name,
            _kind(place, "en"),
            "sure" if hotspot.is_sure else "likely",
            ranked.hotspot.function,
            reached(ranked.reach),
        ),
        *(hotspot.symbol, _why(place, language), uses),
    )
    return dict(zip(FIELDS, values, strict=True))


def as_json(places: Sequence[Place], language: Language) -> str:
    """One array."""
    records = [record_of(rank, place, language) for rank, place in enumerate(places, 1)]
    lines = ",\n".join(json_text(record) for record in records)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def as_csv(places: Sequence[Place], language: Language) -> str:
    """A heading and one line a place; the lines of `uses` are separated by spaces."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for rank, place in enumerate(places, 1):
        record = record_of(rank, place, language)
        record["uses"] = " ".join(map(str, record["uses"]))
        writer.writerow({name: printable(str(value)) for name, value in record.items()})
    return text.getvalue()


def as_table(places: Sequence[Place], language: Language) -> str:
    """For people: a line with the place, and one that says why."""
    if not places:
        return f"{message('shape.nothing').in_language(language)}\n"
    lines = ["  ".join(message("shape.headings").in_language(language).split())]
    for rank, place in enumerate(places, 1):
        record = record_of(rank, place, language)
        where = printable(f"{record['path']}:{record['line']}:{record['column']}")
        kind = _kind(place, language)
        if not place.ranked.hotspot.is_sure:
            kind += f" ({message('shape.likely').in_language(language)})"
        lines.append(f"{rank:4} {record['score']:5}  {kind}  {where}  {record['function']}")
        lines.append(f"            {record['code']}: {printable(record['why'])}")
    return "\n".join(lines) + "\n"


def _kind(place: Place, language: Language) -> str:
    hotspot = place.ranked.hotspot
    if hotspot.is_shape:
        kind = message("shape.kind-both" if hotspot.synchronizes else "shape.kind-shape")
    else:
        kind = message("shape.kind-wait" if hotspot.synchronizes else "shape.kind-batch")
    return kind.in_language(language)


def _why(place: Place, language: Language) -> str:
    hotspot = place.ranked.hotspot
    text = place.rule.message.in_language(language).format(symbol=hotspot.symbol)
    better = note_of(hotspot.advice, is_sure=hotspot.is_sure).in_language(language)
    return f"{text} {better}" if language == "en" else f"{text}{better}"


Report = Callable[[Sequence[Place], Language], str]
REPORTS: Mapping[str, Report] = {"human": as_table, "json": as_json, "csv": as_csv}
