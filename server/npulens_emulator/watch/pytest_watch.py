"""A plugin of pytest: how each test of a verified run ended, and in which error."""

from typing import Any

from npulens_emulator.watch.record import record


def pytest_runtest_logreport(report: Any) -> None:
    """A phase of a test is over; the first that does not pass tells how the test ended."""
    if hasattr(report, "node"):  # ran in a worker of xdist, which writes it down itself
        return
    test = _test(report.nodeid)
    if report.outcome != "passed" and test["outcome"] == "passed":
        test["outcome"] = report.outcome


def pytest_exception_interact(node: Any, call: Any, report: Any) -> None:
    """A test, or the import of its file, has failed."""
    error = call.excinfo.value
    if type(error).__name__ == "CollectError" and error.__cause__ is not None:
        error = error.__cause__
    test = _test(node.nodeid)
    test["outcome"] = "failed"
    test.setdefault("error", record().described(error, error.__traceback__))


def _test(name: str) -> dict[str, Any]:
    ours = record()
    if ours.tests is None:  # in a worker of xdist
        ours.tests = {}
    return ours.tests.setdefault(name, {"outcome": "passed"})
