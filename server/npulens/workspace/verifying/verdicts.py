"""What a run on the emulated NPU means."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from npulens.workspace.verifying.verified_run import RunResult


class Outcome(Enum):
    """How a run ended, and what that says of the script."""

    PASSED = "passed"
    """It trained on the NPU, and nothing of CUDA was reached."""
    TESTS_PASSED = "tests-passed"
    """The same of tests."""
    RAN = "ran"
    """It came to its end there, but no optimizer made a step."""
    CUDA_LEFT = "cuda-left"
    """It ran, but calls of CUDA were reached."""
    ON_CPU = "on-cpu"
    """What was trained stayed on the CPU."""
    WITHOUT_NPU = "without-npu"
    """Nothing was computed on the NPU."""
    UNSUPPORTED = "unsupported"
    """It ran, but the NPU does not have what it uses."""
    DIVERGED = "diverged"
    """It ran, but does not compute what the original does."""
    CUDA_NEEDED = "cuda-needed"
    """It stopped in something that only CUDA has."""
    UNKNOWN_NAME = "unknown-name"
    """It stopped at a name that torch_npu does not have."""
    TESTS_FAILED = "tests-failed"
    """Tests did not pass."""
    ERROR = "error"
    """It stopped in another error."""
    NOT_EMULATED = "not-emulated"
    """It stopped at something that the emulator does not imitate."""
    NEEDS_MODULE = "needs-module"
    """It needs a module that is not there."""
    NEEDS_FILE = "needs-file"
    """It needs a file that is not there."""
    NEEDS_ARGUMENTS = "needs-arguments"
    """It ended at once with exit code 2, as parsers of arguments do."""
    NEEDS_LAUNCHER = "needs-launcher"
    """It asks for what torchrun sets."""
    NEEDS_INPUT = "needs-input"
    """It reads standard input."""
    NO_TESTS = "no-tests"
    """No test was selected."""
    EXITED = "exited"
    """It ended itself with an exit code."""
    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"
    CRASHED = "crashed"
    """A process ended without a report."""


GOOD = {Outcome.PASSED, Outcome.TESTS_PASSED, Outcome.RAN}
LEFT_TO_DO = {
    *(Outcome.CUDA_LEFT, Outcome.ON_CPU, Outcome.WITHOUT_NPU, Outcome.UNSUPPORTED),
    *(Outcome.DIVERGED, Outcome.CUDA_NEEDED, Outcome.UNKNOWN_NAME, Outcome.TESTS_FAILED),
    Outcome.ERROR,
}
"""The run says that the script is not ready; of the others it says nothing."""


def status(outcome: Outcome) -> str:
    """`passed`, `not-ready`, or `stopped` where the run says nothing of the script."""
    if outcome in GOOD:
        return "passed"
    return "not-ready" if outcome in LEFT_TO_DO else "stopped"


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the user's code, and something that was reached there.

    Attributes:
        path: Relative to the folder of the project.
        line: From 1.
        name: What was called or happened.
        count: How often, in all processes.
        kind: More of it, such as `wait`.
        cell: In a notebook the cell, from 1, from whose start the line counts.
    """

    path: str
    line: int
    name: str
    count: int
    kind: str = ""
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run says.

    Attributes:
        outcome: How it ended.
        path: Where, relative to the folder of the project, or None.
        line: Where, or None.
        detail: A module, a file, a name or the text of an error.
        cell: In a notebook the cell, from 1, from whose start the line counts.
    """

    outcome: Outcome
    path: str | None = None
    line: int | None = None
    detail: str = ""
    cell: int | None = None


PROBES = frozenset(
    f"torch.cuda.{name}"
    for name in ("is_available", "device_count", "is_initialized", "is_bf16_supported")
)
"""Questions that code for several devices asks; the answers say no."""

_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_CUDA_WORDS = ("cuda", "nvidia", "nccl", "nvcc", "cudnn")
_MEMORY_WORDS = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc")


def cuda_calls(result: RunResult) -> list[Site]:
    """Where calls of CUDA were reached."""
    return _sites(result, "cuda_calls", lambda key: Site(key[0], key[1], key[2], 0))


def device_events(result: RunResult) -> list[Site]:
    """Where shapes depended on data and the host waited."""
    return _sites(result, "events", lambda key: Site(key[0], key[1], key[3], 0, key[2]))


def api_uses(result: RunResult, apis: Mapping[str, str]) -> list[Site]:
    """Where APIs were used that the NPU lacks or leaves to the host."""
    return _sites(result, "apis", lambda key: Site(key[0], key[1], key[2], 0, apis[key[2]]))


def _sites(result: RunResult, table: str, make: Callable[[list[Any]], Site]) -> list[Site]:
    counts: Counter[Site] = Counter()
    for report in result.reports:
        for *key, count in report[table]:
            counts[make(key)] += count
    found = [Site(each.path, each.line, each.name, n, each.kind) for each, n in counts.items()]
    return sorted(found, key=lambda each: (each.path, each.line, each.name))


def judge(result: RunResult, apis: Mapping[str, str]) -> Verdict:
    """What a run on the NPU says."""
    ends = [report["end"] for report in result.reports]
    stopped = next((end for end in ends if end["kind"] in ("error", "exit")), None)
    if result.timed_out:
        place: dict[str, Any] = next((end for end in ends if end["kind"] == "terminated"), {})
        return Verdict(Outcome.TIME_LIMIT, place.get("path"), place.get("line"))
    if stopped is not None:
        return _judge_stop(stopped, result)
    if result.code and not any(end["kind"] == "steps" for end in ends):
        return _judge_crash(result)
    return judge_run(result, apis)


def judge_run(
    result: RunResult, apis: Mapping[str, str], *, trains_on_cpu: bool = False
) -> Verdict:
    """What a run says that came to its end.

    Args:
        result: The run.
        apis: The APIs that do not work on the NPU, and why.
        trains_on_cpu: Whether models may be trained on the CPU.
    """
    left = [site for site in cuda_calls(result) if site.name not in PROBES]
    if left:
        return Verdict(Outcome.CUDA_LEFT, left[0].path, left[0].line, left[0].name)
    on_cpu = sum(report["trained"].get("cpu", 0) for report in result.reports)
    on_npu = sum(report["trained"].get("npu", 0) for report in result.reports)
    if on_cpu and not trains_on_cpu:
        return Verdict(Outcome.ON_CPU, detail=f"{on_cpu}/{on_cpu + on_npu}")
    if not any(report["operators"] for report in result.reports):
        return Verdict(Outcome.WITHOUT_NPU)
    failing = [site for site in api_uses(result, apis) if site.kind == "fails"]
    if failing:
        return Verdict(Outcome.UNSUPPORTED, failing[0].path, failing[0].line, failing[0].name)
    return Verdict(Outcome.PASSED if result.steps else Outcome.RAN)


def _judge_crash(result: RunResult) -> Verdict:
    last = result.output[-1] if result.output else ""
    if any(word in line for word in _MEMORY_WORDS for line in result.output):
        return Verdict(Outcome.MEMORY_LIMIT, detail=last)
    return Verdict(Outcome.CRASHED, detail=last or f"exit code {result.code}")


def _judge_stop(end: Mapping[str, Any], result: RunResult) -> Verdict:
    if end["kind"] == "error":
        return judge_error(end, result)
    has_complained = end.get("code") == 2 and not result.steps
    outcome = Outcome.NEEDS_ARGUMENTS if has_complained else Outcome.EXITED
    detail = next(last_words(result), "") if has_complained else str(end.get("code"))
    return Verdict(outcome, end["path"], end["line"], detail)


def judge_error(end: Mapping[str, Any], result: RunResult) -> Verdict:
    """What an error says that ended a run or a test, as `Record.described` tells it."""
    text = f"{end['type']}: {end['message']}" if end["message"] else end["type"]

    def verdict(outcome: Outcome, detail: str = text) -> Verdict:
        return Verdict(outcome, end["path"], end["line"], detail)

    bases = end["bases"]
    low = text.lower()
    if "MemoryError" in bases or any(word in text for word in _MEMORY_WORDS):
        return verdict(Outcome.MEMORY_LIMIT)
    if "NotEmulatedError" in bases:
        return verdict(Outcome.NOT_EMULATED, end["message"])
    unknown = [name for report in result.reports for name in report["unknown_names"]]
    if "AttributeError" in bases and unknown and "torch_npu" in low:
        return verdict(Outcome.UNKNOWN_NAME, unknown[-1])
    if "ImportError" in bases and (module := end["name"] or _named_module(end["message"])):
        return verdict(Outcome.NEEDS_MODULE, module)
    if "FileNotFoundError" in bases and end["name"]:
        return verdict(Outcome.NEEDS_FILE, str(end["name"]))
    if any(f"'{name}'" in text or f" {name} " in text for name in _LAUNCHER):
        return verdict(Outcome.NEEDS_LAUNCHER)
    if "EOFError" in bases:
        return verdict(Outcome.NEEDS_INPUT)
    if any(word in low for word in _CUDA_WORDS):
        return verdict(Outcome.CUDA_NEEDED)
    return verdict(Outcome.ERROR)


def _named_module(message: str) -> str:
    """What `python -m` misses, which raises without telling the name apart."""
    match = re.match(r"No module named '?([\w.]+)", message)
    return "" if match is None else match[1]


def last_words(result: RunResult) -> Iterator[str]:
    """The last lines that were printed, those in which parsers of arguments complain first."""
    lines = [line for line in reversed(result.output) if line.strip()]
    yield from (line for line in lines if "error: " in line)
    yield from lines
