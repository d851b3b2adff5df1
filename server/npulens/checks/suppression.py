"""Findings that a comment silences, and comments that silence nothing."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Finding, Fix
from npulens.catalog.tables import Catalogue
from npulens.syntax.comments import Suppression, suppressions
from npulens.text.document import Document
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_ALL = ""


def without_suppressed(
    document: Document,
    findings: Sequence[Finding],
    catalogue: Catalogue,
    comments_of: Callable[[str], Iterable[Span]],
) -> Iterable[Finding]:
    """The findings of a document that no comment silences, and one for each idle comment.

    A comment silences what starts or ends on its line.
    """
    found = list(dict.fromkeys(suppressions(document.text, comments_of)))
    if not found:
        return findings
    lines = document.lines
    for_file = [comment for comment in found if comment.whole_file]
    by_line: dict[int, list[Suppression]] = {}
    for comment in found:
        if not comment.whole_file:
            by_line.setdefault(_line(comment.span.start, lines), []).append(comment)
    used: set[tuple[Suppression, str]] = set()
    kept: list[Finding] = []
    for finding in findings:
        at = {_line(finding.span.start, lines), _line(finding.span.end, lines)}
        near = [comment for line in at for comment in by_line.get(line, ())]
        silencing = [pair for comment in (*near, *for_file) for pair in _silences(comment, finding)]
        used.update(silencing)
        if not silencing:
            kept.append(finding)
    for comment in found:
        unused = [code for code in _codes(comment) if (comment, code) not in used]
        if unused or comment.codes == ():
            kept.append(_unused(comment, unused, document.text, catalogue))
    return sorted(kept, key=lambda finding: (finding.span, finding.rule.code))


def _line(offset: int, lines: LineMap) -> int:
    return bisect_right(lines.starts, offset)


def _codes(comment: Suppression) -> tuple[str, ...]:
    return (_ALL,) if comment.codes is None else comment.codes


def _silences(comment: Suppression, finding: Finding) -> Iterator[tuple[Suppression, str]]:
    for code in _codes(comment):
        if code in (_ALL, finding.rule.code, finding.rule.name):
            yield comment, code


def _unused(
    comment: Suppression, unused: Sequence[str], text: str, catalogue: Catalogue
) -> Finding:
    title = message("fix.remove-suppression")
    kept = [code for code in _codes(comment) if code not in unused and code != _ALL]
    if kept:
        opening = text.index("[", comment.span.start)
        edit = Edit(Span(opening, comment.span.end), f"[{', '.join(kept)}]")
    else:
        edit = _removal(comment.span, text)
    fix = Fix(title, Applicability.SAFE, (edit,))
    codes = ", ".join(unused) if comment.codes else "all"
    return Finding(
        catalogue.required("unused-suppression"), comment.span, {"codes": codes}, fixes=(fix,)
    )


def _removal(span: Span, text: str) -> Edit:
    """Take the words out of a comment; what else it says stays a comment."""
    end = span.end
    while end < len(text) and text[end] in " \t":
        end += 1
    if end < len(text) and text[end] not in "\r\n":
        return Edit(Span(span.start, end), "" if text[end] == "#" else "# ")
    start = span.start
    while start and text[start - 1] in " \t":
        start -= 1
    return Edit(Span(start, end), "")
