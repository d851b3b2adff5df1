"""SARIF 2.1.0, the interchange format of static analysis that OASIS defines."""

from collections.abc import Sequence
from typing import Any

import npulens
from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Fix, Language, Rule, Severity
from npulens.report.formats import Report
from npulens.report.json_text import json_text
from npulens.report.locations import cell_named, message_in_cell, uri_reference
from npulens.report.silence_text import settled_text
from npulens.text.document import Document
from npulens.text.places import file_line, place_at
from npulens.text.spans import Span
from npulens.workspace.runs.baseline import numbered

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
    Severity.HINT: "note",
}
_REPORTED_ELSEWHERE = "reported-"
"""How the reasons begin that there is a finding at another place."""
_FINGERPRINT = "ruleAndLine/v1"


class SarifReport(Report):
    """One log with one run."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._rules: dict[str, Rule] = {}
        self._results: list[dict[str, Any]] = []

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        for finding, mark, number in numbered(document, findings):
            self._results.append(self._result(document, finding, f"{mark} {number}"))
        return ""

    def settled(self, document: Document, settled: Sequence[Finding]) -> str:
        """The part of what is settled in one file, which comes at the end, too."""
        for finding, mark, number in numbered(document, settled):
            result = self._base(document, finding, f"settled {mark} {number}")
            self._results.append({**result, **self._settlement(document, finding)})
        return ""

    def end(self, checked: int) -> str:
        """The log."""
        rules = [self._rule(rule) for rule in self._rules.values()]
        driver = {
            "name": "npulens",
            "version": npulens.__version__,
            "semanticVersion": npulens.__version__,
            "rules": rules,
        }
        run = {
            "tool": {"driver": driver},
            "language": "zh-CN" if self._language == "zh" else "en",
            "columnKind": "unicodeCodePoints",
            "results": self._results,
        }
        return json_text({"version": "2.1.0", "runs": [run]}, indent=1) + "\n"

    def _result(self, document: Document, finding: Finding, mark: str) -> dict[str, Any]:
        result = {
            **self._base(document, finding, mark),
            "level": _LEVELS[finding.effective_severity],
            "message": {"text": message_in_cell(document, finding, self._language)},
        }
        if finding.related:
            result["relatedLocations"] = [
                {
                    **_location(document, part.span),
                    "message": {"text": part.text.in_language(self._language)},
                }
                for part in finding.related
            ]
        if finding.fixes and not document.cell_marks:  # edits are of the file, not of its cells
            result["fixes"] = [self._fix(document, finding.fixes[0])]
        return result

    def _base(self, document: Document, finding: Finding, mark: str) -> dict[str, Any]:
        """What the results of findings and of settled places have in common."""
        rule = finding.rule
        self._rules.setdefault(rule.code, rule)
        return {
            "ruleId": rule.code,
            "ruleIndex": list(self._rules).index(rule.code),
            "locations": [_location(document, finding.span)],
            "partialFingerprints": {_FINGERPRINT: mark},
        }

    def _settlement(self, document: Document, finding: Finding) -> dict[str, Any]:
        """What the result of a settled place has besides, so that it is no problem."""
        settlement, language = finding.settlement, self._language
        assert settlement is not None
        is_elsewhere = settlement.reason.startswith(_REPORTED_ELSEWHERE)
        text = settled_text(document, finding, language)
        fields: dict[str, Any] = {
            "kind": "informational" if is_elsewhere else "notApplicable",
            "level": "none",
            "message": {"text": cell_named(document, finding, language) + text},
            "properties": {"reason": settlement.reason},
        }
        if settlement.span is not None and settlement.span != finding.span:
            note = {"text": message("report.decides").in_language(language)}
            decides = {**_location(document, settlement.span), "message": note}
            fields["relatedLocations"] = [decides]
        return fields

    def _rule(self, rule: Rule) -> dict[str, Any]:
        explanation = rule.explanation.in_language(self._language)
        return {
            "id": rule.code,
            "name": rule.name,
            "shortDescription": {"text": rule.name.replace("-", " ")},
            "help": {"text": explanation, "markdown": explanation},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            "properties": {"tags": [rule.family]},
        }

    def _fix(self, document: Document, fix: Fix) -> dict[str, Any]:
        return {
            "description": {"text": fix.title.in_language(self._language)},
            "artifactChanges": [
                {
                    "artifactLocation": _artifact(document),
                    "replacements": [
                        {
                            "deletedRegion": _region(document, edit.span),
                            "insertedContent": {"text": edit.replacement},
                        }
                        for edit in fix.edits
                    ],
                }
            ],
            "properties": {"applicability": fix.applicability.value},
        }


def _location(document: Document, span: Span) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(document), "region": _region(document, span)}
    return {"physicalLocation": place}


def _artifact(document: Document) -> dict[str, str]:
    uri = uri_reference(document.path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _region(document: Document, span: Span) -> dict[str, int]:
    if document.cell_marks:
        lines = (file_line(document, span.start), file_line(document, span.end))
        return {"startLine": lines[0], "endLine": lines[1]}
    start, end = place_at(document, span.start), place_at(document, span.end)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }
