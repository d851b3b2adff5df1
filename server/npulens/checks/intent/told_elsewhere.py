"""Reasons that say a place is reported elsewhere, where nothing is reported but settled."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.model import Finding
from npulens.catalog.settlements import Settlement
from npulens.checks.intent.guarded_imports import ImportFinder
from npulens.checks.whole_module import WholeModule
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.failing_imports import packages, tried_parts

_ELSEWHERE = frozenset({"reported-at-import", "reported-at-use"})
_ON_THE_WAY = frozenset({*_ELSEWHERE, "reported-at-build", "reported-once"})


def with_true_places(
    settled: Sequence[Finding], findings: Sequence[Finding], module: WholeModule
) -> list[Finding]:
    """What is settled, with the reason of an import for its uses where that is settled itself.

    Without any such reason, but with an import that may fail, the module goes on without it.

    Args:
        settled: What is settled in a module.
        findings: What is reported of it.
        module: The module.
    """
    if not any(_reason(each) in _ELSEWHERE for each in settled):
        return list(settled)
    imports = ImportFinder(module)
    reported = {_about(finding, imports) for finding in findings}
    reasons: dict[str, Settlement] = {}
    for each in settled:
        if each.settlement is not None and _reason(each) not in _ON_THE_WAY:
            reasons.setdefault(_about(each, imports), each.settlement)
    for about, guard in _guards(imports).items():
        reasons.setdefault(about, Settlement("fallback", guard))
    return [
        replace(each, settlement=reasons[about])
        if _reason(each) in _ELSEWHERE
        and (about := _about(each, imports)) not in reported
        and about in reasons
        else each
        for each in settled
    ]


def _reason(finding: Finding) -> str:
    return "" if finding.settlement is None else finding.settlement.reason


def _about(finding: Finding, imports: ImportFinder) -> str:
    """The library that something is about; what is of PyTorch is known by its whole name."""
    statement = imports.at(finding.span)
    symbol = finding.arguments.get("symbol", "")
    if symbol.startswith("torch."):
        return symbol
    found = [] if statement is None else packages(statement)
    return found[0] if found and found[0] else symbol.partition(".")[0]


def _guards(imports: ImportFinder) -> dict[str, Span]:
    """The libraries that a `try` imports and does without, each with the import."""
    return {
        package: imports.span(part)
        for node in imports.nodes
        if isinstance(node, ast.Try)
        for statement in tried_parts(node)
        for part in nodes_below(statement)
        for package in packages(part)
    }
