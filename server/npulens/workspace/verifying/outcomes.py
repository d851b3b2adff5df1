"""How a run can end, and what is said of it."""

from dataclasses import dataclass
from enum import Enum


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
    NEEDS_OPERATOR = "needs-operator"
    """It calls an operator that a compiled extension would register."""
    NEEDS_NETWORK = "needs-network"
    """It wants to download something."""
    NEEDS_VARIABLE = "needs-variable"
    """It asks for an environment variable that is not set."""
    NEEDS_ARGUMENTS = "needs-arguments"
    """It ended at once with exit code 2, as parsers of arguments do, or misses one."""
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
    """A process was ended by a signal, such as a segmentation fault."""


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
