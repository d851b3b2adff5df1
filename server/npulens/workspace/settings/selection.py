"""Which findings a configuration wants, and how much they matter to it."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from npulens.catalog.model import Finding, Severity
from npulens.verdicts.ledger import Judgement, Ledger
from npulens.workspace.settings.configuration import Configuration, absolute, fitting, is_selected
from npulens.workspace.settings.path_patterns import Patterns, read_pattern


def chosen(judged: Judgement, configuration: Configuration, path: str) -> Judgement:
    """What a configuration wants of what is known of a file; what it leaves out is settled."""
    ledger = Ledger((*judged.findings, *judged.settled))
    wanted = selected(ledger.open, configuration, path)
    ledger.open = [finding for finding in ledger.open if finding.rule.enabled]
    ledger.settle(wanted, "rule-off")
    # Fixes of what is settled are none, and would only be carried about.
    settled = [replace(f, fixes=(), related=(), note=None) for f in ledger.in_order()]
    return Judgement(wanted, tuple(settled))


def selected(
    findings: Iterable[Finding], configuration: Configuration, path: str
) -> tuple[Finding, ...]:
    """The findings of a file that the configuration wants, with the severities it gives them."""
    ignored = _ignored_in(path, configuration)
    wanted: dict[str, bool] = {}
    kept = []
    for finding in findings:
        rule = finding.rule
        if rule.code not in wanted:
            wanted[rule.code] = is_selected(rule, configuration) and not any(
                fitting(word, rule) for word in ignored
            )
        if wanted[rule.code]:
            severity = _severity(finding, configuration)
            kept.append(finding if severity is None else replace(finding, severity=severity))
    return tuple(kept)


def _severity(finding: Finding, configuration: Configuration) -> Severity | None:
    """What the longest word for the rule says; where a reason is overruled, that says it."""
    if finding.overruled or not configuration.severities:
        return None
    rule = finding.rule
    fits = [(fitting(word, rule), severity) for word, severity in configuration.severities]
    length, severity = max(fits, key=lambda fit: fit[0])
    return severity if length else None


def _ignored_in(path: str, configuration: Configuration) -> tuple[str, ...]:
    if not configuration.per_file_ignores:
        return ()
    try:
        relative = absolute(Path(path)).relative_to(absolute(configuration.root)).as_posix()
    except ValueError:  # the patterns are about files below the configuration
        return ()
    return tuple(
        word
        for pattern, words in configuration.per_file_ignores
        if _matches(pattern, relative)
        for word in words
    )


@lru_cache(maxsize=65_536)
def _matches(pattern: str, path: str) -> bool:
    return Patterns([read_pattern(pattern)]).ignores(path) is True
