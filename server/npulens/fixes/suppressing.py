"""Comments that silence a finding, written where a user would write them."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable

from npulens.catalog.model import Edit
from npulens.syntax.comments import Suppression, suppressions
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span

CommentsOf = Callable[[str], Iterable[Span]]
_HEAD = re.compile(r"(?:#!.*(?:\r\n?|\n))?(?:[ \t\f]*#.*coding[:=].*(?:\r\n?|\n))?")
_WORDS = "npulens: ignore"


def suppress_on_line(lines: LineMap, span: Span, code: str, comments_of: CommentsOf) -> Edit | None:
    """The edit that silences a rule on the line where a finding starts or ends.

    `None` if no comment can be on either: inside a text of several lines, or before a line
    that continues.
    """
    text = lines.text
    found = [s for s in suppressions(text, comments_of) if not s.whole_file]
    for offset in dict.fromkeys((span.start, span.end)):
        start, end = _line(lines, offset)
        there = next((s for s in found if start <= s.span.start < end), None)
        if there is not None:
            return _with_code(there, code, text)
        line = text[start:end]
        gap = "" if not line.strip() else "  "
        at = start + len(line.rstrip())
        edit = Edit(Span(at, end), f"{gap}# {_WORDS}[{code}]")
        if line.rstrip().endswith("\\"):
            continue
        changed = text[:at] + edit.replacement + text[end:]
        if any(at <= s.span.start < at + len(edit.replacement) for s in _all(changed, comments_of)):
            return edit
    return None


def suppress_in_file(lines: LineMap, code: str, comments_of: CommentsOf) -> Edit | None:
    """The edit that silences a rule in the whole text, `None` if it can hold no comment."""
    text = lines.text
    there = next((s for s in suppressions(text, comments_of) if s.whole_file), None)
    if there is not None:
        return _with_code(there, code, text)
    head = _HEAD.match(text)
    at = 0 if head is None else head.end()
    comment = f"# {_WORDS}-file[{code}]"
    if not _all(f"{comment}\n", comments_of):
        return None
    return Edit(Span(at, at), f"{comment}{line_ending(text)}")


def _all(text: str, comments_of: CommentsOf) -> list[Suppression]:
    return list(suppressions(text, comments_of))


def _with_code(comment: Suppression, code: str, text: str) -> Edit | None:
    """One more code in a list; a comment without a list silences everything already."""
    if comment.codes is None:
        return None
    opening = text.index("[", comment.span.start)
    codes = list(dict.fromkeys((*comment.codes, code)))
    return Edit(Span(opening, comment.span.end), f"[{', '.join(codes)}]")


def _line(lines: LineMap, offset: int) -> tuple[int, int]:
    """Where the line of an offset starts, and where its text ends."""
    line = bisect_right(lines.starts, offset) - 1
    start = lines.starts[line]
    end = lines.starts[line + 1] if line + 1 < len(lines.starts) else len(lines.text)
    return start, start + len(lines.text[start:end].rstrip("\r\n"))
