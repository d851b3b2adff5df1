"""Findings that a comment silences, and comments that silence nothing."""

from collections.abc import Iterable, Sequence

from npulens.catalog.model import Applicability, Edit, Finding, Fix, LocalizedText, Rule
from npulens.catalog.tables import Catalogue
from npulens.syntax.comments import Suppression, suppressions
from npulens.text.spans import Span


def without_suppressed(
    text: str, findings: list[Finding], catalogue: Catalogue
) -> Iterable[Finding]:
    """The findings of a text that no comment silences, and one for each idle comment."""
    comments = list(suppressions(text))
    if not comments:
        return findings
    used: set[tuple[Suppression, str]] = set()
    kept = [f for f in findings if not _is_suppressed(f, text, comments, used, catalogue)]
    rule = catalogue.rule_named("unused-suppression")
    for comment in comments:
        codes = [code for code, _ in comment.codes] or [""]
        unused = [code for code in codes if (comment, code) not in used]
        if unused and rule is not None:
            kept.append(_unused(rule, comment, unused, text))
    return sorted(kept, key=lambda finding: (finding.span, finding.rule.code))


def _is_suppressed(
    finding: Finding,
    text: str,
    comments: Sequence[Suppression],
    used: set[tuple[Suppression, str]],
    catalogue: Catalogue,
) -> bool:
    suppressed = False
    for comment in comments:
        if not comment.whole_file and not _same_line(text, finding.span, comment.span.start):
            continue
        for code in [code for code, _ in comment.codes] or [""]:
            if code in ("", finding.rule.code, finding.rule.name):
                used.add((comment, code))
                suppressed = True
    return suppressed


def _same_line(text: str, span: Span, offset: int) -> bool:
    """Whether an offset is on one of the lines of a span, seen from its first or its last line."""
    if offset >= span.end:
        return "\n" not in text[span.end : offset]
    line_end = text.find("\n", span.start)
    return span.start <= offset and (line_end < 0 or offset <= line_end)


def _unused(rule: Rule, comment: Suppression, unused: Sequence[str], text: str) -> Finding:
    kept = [code for code, _ in comment.codes if code not in unused]
    title = LocalizedText("Remove the unused suppression", "删除未使用的忽略注释")
    if kept:
        opening = text.index("[", comment.span.start)
        edit = Edit(Span(opening, comment.span.end), f"[{', '.join(kept)}]")
    else:
        start = comment.span.start
        while start and text[start - 1] in " \t":
            start -= 1
        edit = Edit(Span(start, comment.span.end), "")
    fix = Fix(title, Applicability.SAFE, (edit,))
    codes = ", ".join(unused) if unused != [""] else "all"
    return Finding(rule, comment.span, {"codes": codes}, fixes=(fix,))
