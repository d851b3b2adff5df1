"""The last look at fixes before anybody sees them: each edit replaces what it was made for.

A fix is made from places in a tree. Should one of them ever be looked up in another text, the fix
must not reach a file or an editor: it could change a comment or a string without breaking the code.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from operator import is_

from npulens.catalog.model import Edit, Finding, Fix
from npulens.syntax.strings import comments_and_strings
from npulens.text.spans import Span

_WORD = re.compile(r"\w+")


def expecting(fix: Fix, text: str) -> Fix:
    """The fix with edits that know the text they replace; `text` is what their places count in."""
    if all(e.expected or e.span.start == e.span.end for e in fix.edits):
        return fix
    edits = (e if e.expected else e._replace(expected=text[slice(*e.span)]) for e in fix.edits)
    return replace(fix, edits=tuple(edits))


def all_expecting(findings: Iterable[Finding], text: str) -> list[Finding]:
    """The findings with such fixes."""
    return with_fixes(findings, lambda fix: expecting(fix, text))


def with_fixes(findings: Iterable[Finding], change: Callable[[Fix], Fix | None]) -> list[Finding]:
    """The findings with what becomes of their fixes: `None` takes one away.

    A fix of a whole module is shared by all of its findings, and still is afterwards.
    """
    changed: dict[
        int, tuple[Fix, Fix | None]
    ] = {}  # a fix is kept, so that its identity is its own
    found = []
    for finding in findings:
        fixes = []
        for fix in finding.fixes:
            if id(fix) not in changed:
                changed[id(fix)] = fix, change(fix)
            fixes.append(changed[id(fix)][1])
        kept = tuple(fix for fix in fixes if fix is not None)
        is_same = len(kept) == len(finding.fixes) and all(map(is_, kept, finding.fixes))
        found.append(finding if is_same else replace(finding, fixes=kept))
    return found


class EditGuard:
    """Says which edits of a text change only what they are made for.

    Args:
        text: The text of a Python module.
        words: What may be replaced inside of strings: the words that the rules know.
    """

    def __init__(self, text: str, words: Container[str]) -> None:
        self._text = text
        self._words = words
        self._fitting: dict[Edit, bool] = {}

    def guarded(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, without fixes that hold an edit which does not fit the text."""
        return with_fixes(findings, lambda fix: fix if all(map(self.fits, fix.edits)) else None)

    def fits(self, edit: Edit) -> bool:
        """Whether `_fits` says so; the import that many fixes need is looked at once."""
        if edit not in self._fitting:
            self._fitting[edit] = self._fits(edit)
        return self._fitting[edit]

    def _fits(self, edit: Edit) -> bool:
        """Whether an edit replaces what it expects: whole words, outside of strings and comments.

        Inside of a string it may replace words that the rules know, such as a device. A comment
        may only go as a whole, with the statement around it.
        """
        start, end = edit.span
        if not 0 <= start <= end <= len(self._text):
            return False
        if self._text[start:end] != edit.expected:
            return False
        touched = self._literals_at(edit.span)
        if not touched:
            return not (self._splits_word(start) or self._splits_word(end))
        return all(self._is_whole_or_meant(edit, literal) for literal in touched)

    def _is_whole_or_meant(self, edit: Edit, literal: Span) -> bool:
        """Whether an edit replaces all of a string or comment, or words in it that rules know."""
        (start, end), text = edit.span, self._text
        if start <= literal.start and literal.end <= end:
            return True
        is_inside = literal.start < start and end <= literal.end and text[literal.start] != "#"
        return is_inside and any(word in self._words for word in _WORD.findall(edit.expected))

    def _splits_word(self, offset: int) -> bool:
        around = self._text[max(offset - 1, 0) : offset + 1]
        return len(around) == 2 and _WORD.fullmatch(around) is not None and offset > 0

    def _literals_at(self, span: Span) -> list[Span]:
        """The strings and comments that a span overlaps, or that it is an empty place within."""
        first = max(bisect_right(self._literals, Span(span.start, span.start)) - 1, 0)
        near = takewhile(lambda literal: literal.start < span.end, self._literals[first:])
        return [literal for literal in near if span.start < literal.end]

    @cached_property
    def _literals(self) -> Sequence[Span]:
        return list(comments_and_strings(self._text))
