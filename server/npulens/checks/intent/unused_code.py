"""Findings in code that nothing of the project uses: it can wait, and may rather be removed."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.localized import LocalizedText
from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Severity
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_properties import ReportTable
from npulens.text.spans import Span

DEFINITION = re.compile(r"(?m)^(?P<indent>[ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(?P<name>\w+)")


class _Unused(NamedTuple):
    span: Span
    name: str


def without_unused_advice(
    findings: Sequence[Finding], text: str, path: str, project: ProjectFacts
) -> list[Finding]:
    """Leave out advice on what is computed in such code: nothing gains by it.

    Args:
        findings: The findings of a module.
        text: The module.
        path: Its path.
        project: What is known of the project.
    """
    unused = project.unused
    names = unused.names | unused.functions
    if not (names or path in unused.modules) or not any(map(_is_advice, findings)):
        return list(findings)
    if path in unused.modules:
        return [finding for finding in findings if not _is_advice(finding)]
    parts = list(_unused(text, names))
    return [f for f in findings if not _is_advice(f) or _part_around(f, parts) is None]


def _is_advice(finding: Finding) -> bool:
    return finding.rule.table is ReportTable.AFFINITY and (
        finding.effective_severity in (Severity.INFO, Severity.HINT)
    )


def with_unused_code(
    findings: Sequence[Finding], text: str, path: str, project: ProjectFacts
) -> list[Finding]:
    """Findings in such code, at most for information and with what is unused.

    Args:
        findings: The findings of a module.
        text: The module.
        path: Its path.
        project: What is known of the project.
    """
    if not any(finding.effective_severity in _MATTERING for finding in findings):
        return list(findings)
    if path in project.unused.modules:
        note = message("check.unused-module")
        return [_at_most_info(finding, note) for finding in findings]
    names = project.unused.names | project.unused.functions
    parts = list(_unused(text, names)) if names else []
    return [_judged(finding, parts) for finding in findings] if parts else list(findings)


def _judged(finding: Finding, parts: Sequence[_Unused]) -> Finding:
    part = _part_around(finding, parts)
    if part is None:
        return finding
    return _at_most_info(finding, message("check.unused-definition", name=part.name))


def _part_around(finding: Finding, parts: Sequence[_Unused]) -> _Unused | None:
    index = bisect_right(parts, finding.span.start, key=lambda part: part.span.start) - 1
    if index < 0 or finding.span.start >= parts[index].span.end:
        return None
    return parts[index]


def _at_most_info(finding: Finding, note: LocalizedText) -> Finding:
    if finding.rule.family == "engine" or finding.effective_severity not in _MATTERING:
        return finding
    return finding.at_most(Severity.INFO).with_note(note)


_MATTERING = frozenset({Severity.ERROR, Severity.WARNING})


def _unused(text: str, names: frozenset[str]) -> Iterator[_Unused]:
    """The outermost ones, in order."""
    end = 0
    for found in DEFINITION.finditer(text):
        if found.start() >= end and found["name"] in names:
            end = end_of_definition(text, found)
            yield _Unused(Span(found.start(), end), found["name"])


def end_of_definition(text: str, found: re.Match[str]) -> int:
    """Where the next statement begins that is no deeper."""
    depth = len(found["indent"])
    following = re.compile(rf"(?m)^[ \t]{{0,{depth}}}(?=[^\s#)\]}}])").search(text, found.end())
    return len(text) if following is None else following.start()
