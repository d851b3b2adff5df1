"""Findings as plain data, for programs."""

from typing import Any

from npulens.catalog.model import Finding, Fix, Language
from npulens.text.document import Document
from npulens.text.places import cell_at, place_at
from npulens.text.spans import Span


def finding_record(document: Document, finding: Finding, language: Language) -> dict[str, Any]:
    """A finding as plain data; its preferred fix alone is in it."""
    rule = finding.rule
    overruled = {"overruled": finding.overruled} if finding.overruled else {}
    return {
        "path": document.path,
        **_range(document, finding.span),
        "code": rule.code,
        "name": rule.name,
        "family": rule.family,
        "severity": finding.effective_severity.value,
        "message": finding.message(language),
        **overruled,
        "related": [
            {**_range(document, part.span), "message": part.text.in_language(language)}
            for part in finding.related
        ],
        "fix": _fix(document, finding.fixes[0], language) if finding.fixes else None,
    }


def _fix(document: Document, fix: Fix, language: Language) -> dict[str, Any]:
    return {
        "title": fix.title.in_language(language),
        "applicability": fix.applicability.value,
        "edits": [
            {**_range(document, edit.span), "new_text": edit.replacement} for edit in fix.edits
        ],
    }


def _range(document: Document, span: Span) -> dict[str, int]:
    """The places of a span; in a notebook the cell too, from whose start lines count."""
    line, column = place_at(document, span.start)
    end_line, end_column = place_at(document, span.end)
    places = {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
    cell = cell_at(document, span.start)
    return places if cell is None else {"cell": cell, **places}
