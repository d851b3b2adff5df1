"""What a verification says."""

import sys
from collections.abc import Sequence
from pathlib import Path

from npulens.catalog.messages import message, message_if_any, message_of
from npulens.catalog.model import Language, LocalizedText
from npulens.workspace.verifying.outcomes import Outcome, Site, Verdict
from npulens.workspace.verifying.unreached import Unreached

_SHOWN_PARTS = 10


def shown_place(path: str, line: int | None, cell: int | None) -> str:
    """A line as `npulens check` names it: `train.py:12`, or `train.ipynb:cell 3:12`."""
    return f"{path}:{line}" if cell is None else f"{path}:cell {cell}:{line}"


def kind_of_site(site: Site) -> LocalizedText:
    """More of what was seen at a place, empty if there is nothing to add."""
    return message_if_any("verify-kind", site.kind) or LocalizedText("", "")


def verdict_sentence(verdict: Verdict, steps: int, *, placed: bool) -> LocalizedText:
    """The verdict in one sentence; if `placed`, it names the place where there is one."""
    where: LocalizedText | str = ""
    if placed and verdict.path is not None:
        place = shown_place(verdict.path, verdict.line, verdict.cell)
        where = message("verify.where", place=place)
    detail = verdict.detail.partition("\n")[0]
    outcome = verdict.outcome.value
    return message_of("verify-outcome", outcome, steps=steps, detail=detail, where=where)


def way_on(verdict: Verdict, language: Language, *, is_compared: bool = False) -> str | None:
    """What to do so that a run says more, in one sentence; `None` if there is nothing to add."""
    if is_compared and verdict.outcome is Outcome.ERROR:
        return None
    python = Path(sys.executable).name
    outcome = verdict.outcome.value
    found = message_if_any("verify-way", outcome, detail=verdict.detail, python=python)
    return None if found is None else found.in_language(language)


def unreached_sentence(script: str, parts: Sequence[Unreached], language: Language) -> str:
    """Which functions and lines of a script were not reached."""
    if not parts:
        return message("verify.all-reached", script=script).in_language(language)
    shown = [_part(each).in_language(language) for each in parts[:_SHOWN_PARTS]]
    if len(parts) > _SHOWN_PARTS:
        more = message("verify.more", count=len(parts) - _SHOWN_PARTS)
        shown.append(more.in_language(language))
    return message("verify.unreached", script=script, parts=", ".join(shown)).in_language(language)


def _part(part: Unreached) -> LocalizedText:
    if part.line == part.end_line:
        lines = message("verify.one-line", first=part.line)
    else:
        lines = message("verify.lines", first=part.line, last=part.end_line)
    return message("verify.function", name=part.function, lines=lines) if part.function else lines
