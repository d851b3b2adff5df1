"""What a fix for a whole module makes of one line of it."""

from npulens.catalog.messages import message
from npulens.catalog.model import Edit, Fix
from npulens.fixes.apply import apply_edits
from npulens.text.spans import Span


def writes_module(fix: Fix) -> bool:
    """Whether a fix writes all device code of a module, which its title does not show."""
    return fix.title == message("fix.one-code")


def written_lines(text: str, fix: Fix, place: Span) -> list[str]:
    """The lines that a fix writes where the line with a place is; none if it takes that out."""
    whole = _lines_of(text, place)
    edits = [edit for edit in fix.edits if _is_in(edit, whole)]
    for edit in edits:
        lines = _lines_of(text, edit.span)
        whole = Span(min(whole.start, lines.start), max(whole.end, lines.end))
    inside = (edit.shifted(-whole.start) for edit in fix.edits if _is_in(edit, whole))
    return apply_edits(text[slice(*whole)], inside).splitlines()


def _lines_of(text: str, span: Span) -> Span:
    """The whole lines of a span; a span that ends with a line ends there."""
    last = max(span.start, span.end - 1)
    end = text.find("\n", last)
    return Span(text.rfind("\n", 0, span.start) + 1, len(text) if end < 0 else end + 1)


def _is_in(edit: Edit, lines: Span) -> bool:
    """Whether an edit changes these lines; what is inserted behind the last does not."""
    start, end = edit.span
    return start < lines.end and (lines.start < end or lines.start <= start)
