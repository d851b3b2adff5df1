"""The examples of every shipped rule: what breaks it, what its fix makes of that, what is fine."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue, with_verified_names
from npulens.catalog.model import Applicability, Example, Finding, Rule, Target
from npulens.fixes.apply import fix_text
from npulens.text.document import Document
from npulens.text.kinds import kind_of

CATALOGUE = load_catalogue()
WITH_NAMES = with_verified_names(CATALOGUE)

NOT_FROM_A_TEXT = {
    "unreadable-source": "a text was read already; the workspace reports files that cannot be",
    "cuda-operator": "found in C++ and CUDA sources; see test_extensions.py",
    "shim-not-imported": "needs to know the project; see test_run_time.py",
    "cuda-operator-call": "needs to know the project; see test_extensions.py",
    "cuda-extension-import": "needs to know the project; see test_extensions.py",
}

DEPENDS_ON_PYTHON = {
    "newer-syntax": (sys.version_info >= (3, 12), "this Python knows the syntax of the example"),
}


def findings_of(text: str, file: str) -> tuple[Finding, ...]:
    return analyze(Document(file, text), CATALOGUE, Target())


def fixed(text: str, file: str) -> str:
    def found(text: str) -> tuple[Finding, ...]:
        return findings_of(text, file)

    result = fix_text(text, found, Applicability.MANUAL, kind=kind_of(file, text))
    assert not result.refused
    return result.text


def codes(text: str, rule: Rule) -> list[str]:
    """The codes found, with what a rule needs that is off by default."""
    catalogue = CATALOGUE if rule.enabled else WITH_NAMES
    found = analyze(Document(rule.file, text), catalogue, Target())
    return [finding.rule.code for finding in found]


def rules() -> Iterator[Rule]:
    yield from (rule for rule in CATALOGUE.rules.values() if rule.name not in NOT_FROM_A_TEXT)


def examples() -> list[Any]:
    """Every example of every rule."""
    found = []
    for rule in rules():
        for index, example in enumerate(rule.examples):
            marks = []
            applies, reason = DEPENDS_ON_PYTHON.get(rule.name, (False, ""))
            if applies:
                marks.append(pytest.mark.skip(reason=reason))
            name = f"{rule.code}-{rule.name}-{index}"
            found.append(pytest.param(rule, example, id=name, marks=marks))
    return found


VALID = [
    pytest.param(rule, code, id=f"{rule.code}-{rule.name}-{index}")
    for rule in rules()
    for index, code in enumerate(rule.valid)
]


@pytest.mark.parametrize(("rule", "example"), examples())
def test_the_example_breaks_the_rule(rule: Rule, example: Example) -> None:
    assert rule.code in codes(example.before, rule)


@pytest.mark.parametrize(("rule", "example"), examples())
def test_the_fix_makes_of_it_what_the_page_says(rule: Rule, example: Example) -> None:
    if example.after is None:
        own = [
            finding for finding in findings_of(example.before, rule.file) if finding.rule is rule
        ]
        assert [finding.fixes for finding in own] == [()] * len(own)
        assert fixed(example.before, rule.file) == example.before
    else:
        assert fixed(example.before, rule.file) == example.after
        assert rule.code not in codes(example.after, rule)


@pytest.mark.parametrize(("rule", "example"), examples())
def test_a_fix_ends_its_lines_as_the_text_does(rule: Rule, example: Example) -> None:
    after = fixed(example.before, rule.file)
    assert fixed(example.before.replace("\n", "\r\n"), rule.file) == after.replace("\n", "\r\n")


@pytest.mark.parametrize(("rule", "example"), examples())
def test_fixing_twice_changes_nothing(rule: Rule, example: Example) -> None:
    once = fixed(example.before, rule.file)
    assert fixed(once, rule.file) == once
    if example.after is not None:
        assert fixed(example.after, rule.file) == example.after


@pytest.mark.parametrize(("rule", "code"), VALID)
def test_valid_code_does_not_break_the_rule(rule: Rule, code: str) -> None:
    assert rule.code not in codes(code, rule)


def test_only_rules_about_files_have_no_example_to_run() -> None:
    assert {rule.name for rule in CATALOGUE.rules.values()} >= NOT_FROM_A_TEXT.keys()
    assert not any(
        entry.rule.name in NOT_FROM_A_TEXT
        for table in (CATALOGUE.symbols, CATALOGUE.methods, CATALOGUE.environment)
        for entry in table.values()
    )
