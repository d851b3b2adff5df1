"""A verification, for people and as JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Language, LocalizedText
from npulens.report.human import printable
from npulens.report.json_text import json_text
from npulens.report.report_wording import style_name
from npulens.workspace.verifying import run_wording
from npulens.workspace.verifying.outcomes import GOOD, LIMITED, Site, Verdict, status
from npulens.workspace.verifying.run_comparison import Comparison
from npulens.workspace.verifying.test_results import TestResults
from npulens.workspace.verifying.verification import Verification

_SHOWN_LINES = 12
"""How many lines of output are shown of a run that stopped."""


def verdict_line(found: Verification, language: Language) -> str:
    """The one sentence."""
    return printable(_sentence(found.verdict, found.steps, language))


def _sentence(verdict: Verdict, steps: int, language: Language) -> str:
    return run_wording.verdict_sentence(verdict, steps, placed=True).in_language(language)


def as_text(found: Verification, language: Language) -> str:
    """The verdict, and what it rests on."""
    return "\n".join([verdict_line(found, language), *_details(found, language)]) + "\n"


def _details(found: Verification, language: Language) -> Iterator[str]:
    if found.unreached is not None and found.script is not None:
        sentence = run_wording.unreached_sentence(found.script, found.unreached, language)
        yield printable(sentence)
    way = _way_on(found, language)
    if way is not None:
        yield printable(way)
    if found.style is not None:
        style = style_name(found.style, language)
        fixed = message("verify.fixed", count=found.fixed, style=style)
        nothing = message("verify.nothing-fixed", style=style)
        yield (fixed if found.fixed else nothing).in_language(language)
    for given, became in found.arguments.changed:
        yield printable(
            message("verify.argument-changed", given=given, became=became).in_language(language)
        )
    for argument, finding in found.arguments.left:
        why = finding.message(language)
        left = message("verify.argument-left", argument=argument, why=why)
        yield printable(left.in_language(language))
    if found.tests is not None and found.tests.failed:
        yield message("verify.failed-tests").in_language(language)
        for test in found.tests.failed:
            sentence = _sentence(test.verdict, 0, language)
            yield f"  {printable(test.name)}  {printable(sentence)}"
    for heading, sites in (
        (message("verify.cuda-calls"), found.cuda_calls),
        (message("verify.apis"), found.apis),
        (message("verify.events"), found.events),
    ):
        yield from _table(heading, sites, language)
    if found.comparison is not None:
        yield _comparison(found.comparison, language)
    if found.agreement is not None:
        yield message("verify.agreement").in_language(language)
        for place in found.agreement:
            what = message_of("verify-agreement", place.agreement.value).in_language(language)
            names = ", ".join((*place.codes, *sorted({site.name for site in place.sites})))
            where = run_wording.shown_place(place.path, place.line, place.cell)
            yield f"  {what}  {printable(where)}  {names}"
    if found.verdict.outcome not in GOOD | LIMITED and found.output:
        yield message("verify.output").in_language(language)
        yield from (f"  | {printable(line)}" for line in found.output[-_SHOWN_LINES:])


def _table(heading: LocalizedText, sites: Iterable[Site], language: Language) -> Iterator[str]:
    rows = [
        f"  {printable(run_wording.shown_place(site.path, site.line, site.cell))}  {site.count}x"
        f"  {site.name}  {run_wording.kind_of_site(site).in_language(language)}".rstrip()
        for site in sites
    ]
    if rows:
        yield heading.in_language(language)
        yield from rows


def _comparison(comparison: Comparison, language: Language) -> str:
    if comparison.problem:
        problem = printable(comparison.problem.partition("\n")[0])
        return message("verify.not-compared", problem=problem).in_language(language)
    divergence = comparison.divergence
    if divergence is not None:
        sentence = message_of("verify-diverged", divergence.what, **asdict(divergence))
        if comparison.deciding:
            named = message("verify.deciding", codes=", ".join(comparison.deciding))
            sentence = named.behind(sentence)
    else:
        sentence = message(
            "verify.compared",
            losses=comparison.losses,
            steps=comparison.steps,
            largest=comparison.largest,
        )
    return sentence.in_language(language)


def _way_on(found: Verification, language: Language) -> str | None:
    is_compared = found.comparison is not None
    return run_wording.way_on(found.verdict, language, is_compared=is_compared)


def as_json(found: Verification, language: Language) -> str:
    """All of it as one object."""
    content = {
        "status": status(found.verdict.outcome).value,
        "outcome": found.verdict.outcome.value,
        "message": verdict_line(found, language),
        "way_on": _way_on(found, language),
        **_place(found.verdict.path, found.verdict.line, found.verdict.cell),
        "detail": found.verdict.detail,
        "style": None if found.style is None else found.style.value,
        "fixed": found.fixed,
        "arguments": list(found.arguments.run),
        "arguments_left": [
            {"argument": argument, "message": finding.message(language)}
            for argument, finding in found.arguments.left
        ],
        "steps": found.steps,
        "losses": list(found.losses),
        "tests": None if found.tests is None else _tests(found.tests, language),
        "cuda_calls": [_site(site) for site in found.cuda_calls],
        "apis": [_site(site) for site in found.apis],
        "events": [_site(site) for site in found.events],
        "comparison": None if found.comparison is None else _compared(found.comparison),
        "agreement": None
        if found.agreement is None
        else [
            {
                "agreement": place.agreement.value,
                **_place(place.path, place.line, place.cell),
                "codes": list(place.codes),
                "seen": [_site(site) for site in place.sites],
            }
            for place in found.agreement
        ],
        "unreached": None
        if found.unreached is None
        else [
            {"function": each.function or None, "line": each.line, "end_line": each.end_line}
            for each in found.unreached
        ],
        "output": list(found.output),
    }
    return json_text(content, indent=1) + "\n"


def _place(path: str | None, line: int | None, cell: int | None) -> dict[str, Any]:
    """A line; in a notebook the cell too, from whose start it counts."""
    return {"path": path, **({} if cell is None else {"cell": cell}), "line": line}


def _site(site: Site) -> Mapping[str, Any]:
    record = {**_place(site.path, site.line, site.cell), "name": site.name}
    return record | ({"kind": site.kind} if site.kind else {}) | {"count": site.count}


def _tests(tests: TestResults, language: Language) -> Mapping[str, Any]:
    failed = [
        {
            "name": test.name,
            **_place(test.verdict.path, test.verdict.line, test.verdict.cell),
            "outcome": test.verdict.outcome.value,
            "message": _sentence(test.verdict, 0, language),
        }
        for test in tests.failed
    ]
    return {"passed": tests.passed, "skipped": tests.skipped, "failed": failed}


def _compared(comparison: Comparison) -> Mapping[str, Any]:
    divergence = comparison.divergence
    return {
        "losses": comparison.losses,
        "steps": comparison.steps,
        "largest": comparison.largest,
        "problem": comparison.problem,
        "deciding": list(comparison.deciding),
        "divergence": None
        if divergence is None
        else {
            "what": divergence.what,
            "step": divergence.step,
            "parameter": divergence.parameter,
            "original": divergence.original,
            "migrated": divergence.migrated,
        },
    }
