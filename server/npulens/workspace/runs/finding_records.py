"""Findings as plain data that JSON can carry, and back."""

from collections.abc import Mapping
from typing import Any

from npulens.catalog.model import (
    Applicability,
    DynamicShape,
    Edit,
    Finding,
    Fix,
    ImportNeed,
    LocalizedText,
    MigrationStyle,
    Related,
    Rule,
    Severity,
)
from npulens.catalog.settlements import Settlement
from npulens.text.spans import Span


def record_of(finding: Finding) -> list[Any]:
    """A finding as lists, texts and numbers."""
    return [
        finding.rule.code,
        finding.span,
        dict(finding.arguments),
        finding.note,
        [_fix_record(fix) for fix in finding.fixes],
        finding.severity and finding.severity.value,
        finding.related,
        finding.dynamic_shape,
        finding.settlement,
        finding.overruled,
    ]


def finding_of(record: Any, rules: Mapping[str, Rule]) -> Finding:
    """The finding that such a record came from.

    Raises:
        KeyError: There is no such rule.
        TypeError, ValueError: It is no such record.
    """
    code, span, arguments, note, fixes, severity, related, shape, settlement, overruled = record
    return Finding(
        rules[code],
        Span(*span),
        arguments,
        note and LocalizedText(*note),
        tuple(_fix_of(fix) for fix in fixes),
        severity and Severity(severity),
        tuple(Related(Span(*place), LocalizedText(*text)) for place, text in related),
        shape and _shape_of(*shape),
        settlement and _settlement_of(*settlement),
        overruled,
    )


def _settlement_of(reason: Any, span: Any) -> Settlement:
    return Settlement(reason, span and Span(*span))


def _shape_of(
    score: Any, function: Any, reached: Any, is_shape: Any, synchronizes: Any, advice: Any
) -> DynamicShape:
    return DynamicShape(score, function, reached, is_shape, synchronizes, LocalizedText(*advice))


def _fix_record(fix: Fix) -> list[Any]:
    return [
        fix.title,
        fix.applicability.value,
        fix.edits,
        fix.style.value,
        fix.isolation,
        fix.imports.value,
        fix.module,
    ]


def _fix_of(record: Any) -> Fix:
    title, applicability, edits, style, isolation, imports, module = record
    return Fix(
        LocalizedText(*title),
        Applicability(applicability),
        tuple(Edit(Span(*span), *texts) for span, *texts in edits),
        MigrationStyle(style),
        isolation,
        ImportNeed(imports),
        module,
    )
