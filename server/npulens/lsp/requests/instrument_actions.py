"""Instruments on offer in an editor: at a loop that trains, and at what updates weights.

An instrument that reads a file of settings is for the command line, which writes that file.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Edit, LocalizedText
from npulens.fixes.instruments.inserting import instrument_edits
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.instruments.marks import without
from npulens.fixes.scripts import UnclearError
from npulens.text.document import Document
from npulens.text.kinds import Kind
from npulens.text.spans import Span

_OFFERED = ("profiler", "step-time", "bfloat16")
_WORDS = re.compile(r"\.backward\(|\.fit\(|\.train\(|npulens: instrument")
_TRAINS = re.compile(r"\s*(?:async\s+)?(?:for|while)\b|.*\.(?:backward|step|fit|train)\(")


class InstrumentAction(NamedTuple):
    """Something that can be put into a script, or taken out of it."""

    title: LocalizedText
    edits: tuple[Edit, ...]


def instrument_actions(document: Document, span: Span) -> Iterator[InstrumentAction]:
    """What is on offer where the cursor is; nothing where the script is not understood."""
    if document.kind is not Kind.PYTHON or _WORDS.search(document.text) is None:
        return
    line = document.position_at(span.start).line
    starts = document.line_starts
    end = starts[line + 1] if line + 1 < len(starts) else len(document.text)
    here = document.text[starts[line] : end]
    removed = _removed(document.text)
    if removed and ("npulens: instrument" in here or _TRAINS.match(here)):
        yield InstrumentAction(message("editor.take-out-instruments"), removed)
    if not _TRAINS.match(here):
        return
    for name in _OFFERED:
        try:
            edits = instrument_edits(document.text, BY_NAME[name])
        except UnclearError:
            continue
        title = message("editor.instrument", title=message(BY_NAME[name].title))
        yield InstrumentAction(title, edits)


def _removed(text: str) -> tuple[Edit, ...]:
    try:
        return without(text).edits
    except UnclearError:
        return ()
