"""Libraries without which a program stops: `if is_xformers_available(): ... else: raise`."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Severity
from npulens.catalog.rule_properties import WITHOUT_BUILD
from npulens.checks.whole_module import WholeModule
from npulens.text.spans import Span
from npulens.verdicts.ledger import Ledger


def open_refused(ledger: Ledger, module: WholeModule) -> None:
    """Open the first use of each library without which the other arm only raises an error.

    It is information: whether the arm is reached depends on an option.
    """
    guarded = [
        finding
        for finding in ledger.settled
        if finding.rule.library in WITHOUT_BUILD
        and finding.settlement is not None
        and finding.settlement.reason == "fallback"
    ]
    if not guarded:
        return
    tests = list(_refusing(module))
    reported: set[str] = set()
    for finding in guarded:
        symbol = finding.arguments.get("symbol", "")
        settled = finding.settlement
        if symbol in reported or settled is None or settled.span is None:
            continue
        if any(test.covers(settled.span) for test in tests):
            reported.add(symbol)
            opened = replace(finding, settlement=None, fixes=()).with_note(
                message("check.stops-without-library")
            )
            ledger.settled.remove(finding)
            ledger.open.append(opened.at_most(Severity.INFO))


def _refusing(module: WholeModule) -> Iterator[Span]:
    """The tests whose other arm does nothing but raise an error."""
    for node in module.nodes:
        other = node.orelse if isinstance(node, ast.If) else []
        if isinstance(node, ast.If) and len(other) == 1 and isinstance(other[0], ast.Raise):
            yield module.lines.span(node.test)
