"""What a run of pytest says."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npulens.workspace.verifying.error_verdicts import judge_error, last_words
from npulens.workspace.verifying.outcomes import LEFT_TO_DO, Outcome, Verdict
from npulens.workspace.verifying.run_verdicts import judge, judge_run
from npulens.workspace.verifying.verified_run import RunResult

_WRONG_USAGE, _NO_TESTS = 4, 5
"""Exit codes of pytest."""


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed, or a file of tests that could not be imported.

    Attributes:
        name: As pytest names it: `tests/test_model.py::test_train`.
        verdict: What its error would say of a script.
    """

    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class TestResults:
    """How tests ended.

    Attributes:
        passed: How many passed.
        skipped: How many were skipped or are expected to fail.
        failed: Those that failed.
    """

    passed: int
    skipped: int
    failed: tuple[FailedTest, ...]

    @property
    def total(self) -> int:
        """All that ran."""
        return self.passed + len(self.failed)


def test_results(result: RunResult) -> TestResults | None:
    """How the tests of a run ended; `None` if it was no run of tests."""
    tests = {
        name: test for report in result.reports for name, test in (report["tests"] or {}).items()
    }
    if all(report["tests"] is None for report in result.reports):
        return None
    counts = Counter(test["outcome"] for test in tests.values())
    failed = tuple(
        FailedTest(name, _verdict(test, result))
        for name, test in tests.items()
        if test["outcome"] == "failed"
    )
    return TestResults(counts["passed"], counts["skipped"], failed)


def _verdict(test: Mapping[str, Any], result: RunResult) -> Verdict:
    error = test.get("error")
    return Verdict(Outcome.ERROR) if error is None else judge_error(error, result)


def judge_tests(tests: TestResults, result: RunResult, apis: Mapping[str, str]) -> Verdict:
    """What a run of tests says; where all that failed lacked something, what that was."""
    main = next((report for report in result.reports if report["is_main"]), None)
    if result.timed_out or main is None or main["end"]["kind"] not in ("exit", "finished"):
        return judge(result, apis)
    for left in tests.failed:
        # A test that passes elsewhere is one that fails here, whatever its error says.
        if left.verdict.outcome in LEFT_TO_DO or left.verdict.outcome is Outcome.ERROR:
            detail = f"{len(tests.failed)}/{tests.total}"
            return Verdict(Outcome.TESTS_FAILED, left.verdict.path, left.verdict.line, detail)
    if tests.failed:
        return tests.failed[0].verdict
    code = main["end"].get("code", 0)
    if code == _NO_TESTS:
        return Verdict(Outcome.NO_TESTS)
    if code == _WRONG_USAGE:
        return Verdict(Outcome.NEEDS_ARGUMENTS, detail=next(last_words(result), ""))
    if code:
        return judge(result, apis)
    verdict = judge_run(result, apis, trains_on_cpu=True)
    if verdict.outcome in (Outcome.PASSED, Outcome.RAN):
        return Verdict(Outcome.TESTS_PASSED, detail=str(tests.passed))
    return verdict
