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
    LIMIT_REACHED = "limit-reached"
    """It ran there until a limit that the user has set."""
    STEP_LIMIT = "step-limit"
    """It trained there until the limit of steps that holds unless another is given."""
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
    NPU_ERROR = "npu-error"
    """It stopped in an error that is about the NPU, or in which the original does not stop."""
    ERROR = "error"
    """It stopped in another error, which says nothing of the NPU."""
    NOT_EMULATED = "not-emulated"
    """It stopped at something that the emulator does not imitate."""
    EMULATOR_FAILED = "emulator-failed"
    """The emulator itself failed."""
    NEEDS_MODULE = "needs-module"
    """It needs a module that is not there."""
    NEEDS_FILE = "needs-file"
    """It needs a file that is not there."""
    NEEDS_OPERATOR = "needs-operator"
    """It calls an operator that a compiled extension would register."""
    NEEDS_NETWORK = "needs-network"
    """It wants to download something."""
    NEEDS_VARIABLE = "needs-variable"
    """It reads an environment variable that is not set."""
    NEEDS_ARGUMENTS = "needs-arguments"
    """It ended at once with exit code 2, as parsers of arguments do, or misses one."""
    NEEDS_LAUNCHER = "needs-launcher"
    """It reads what torchrun sets."""
    NEEDS_INPUT = "needs-input"
    """It reads standard input."""
    NO_TESTS = "no-tests"
    """No test was selected."""
    FAILS_ALIKE = "fails-alike"
    """It stopped in the very error in which the original stops on the CPU."""
    EXITED = "exited"
    """It ended itself with an exit code."""
    TIME_LIMIT = "time-limit"
    """It ran out of time, by the default limit or before it used the NPU."""
    MEMORY_LIMIT = "memory-limit"
    CRASHED = "crashed"
    """A process was ended by a signal, such as a segmentation fault."""


class Status(Enum):
    """What kind of end that is."""

    PASSED = "passed"
    """It came to its end on the NPU."""
    LIMIT_REACHED = "limit-reached"
    """It came as far as the user wanted it to."""
    NOT_READY = "not-ready"
    """It fails as it would on an NPU."""
    CUT = "cut"
    """It was ended on the way, and nothing is said of the rest."""
    NOT_EMULATED = "not-emulated"
    """The emulator lacks something; nothing is said of the script."""
    NEEDS = "needs"
    """The script was not given what it needs."""
    STOPPED = "stopped"
    """It ended in a way that says nothing of the NPU."""


GOOD = {Outcome.PASSED, Outcome.TESTS_PASSED, Outcome.RAN}
LIMITED = {Outcome.LIMIT_REACHED, Outcome.STEP_LIMIT, Outcome.TIME_LIMIT}
"""A limit has ended the run."""
LEFT_TO_DO = {
    *(Outcome.CUDA_LEFT, Outcome.ON_CPU, Outcome.WITHOUT_NPU, Outcome.UNSUPPORTED),
    *(Outcome.DIVERGED, Outcome.CUDA_NEEDED, Outcome.UNKNOWN_NAME, Outcome.TESTS_FAILED),
    Outcome.NPU_ERROR,
}
"""The run says that the script is not ready."""
_KINDS = {
    Status.PASSED: GOOD,
    Status.LIMIT_REACHED: {Outcome.LIMIT_REACHED},
    Status.NOT_READY: LEFT_TO_DO,
    Status.CUT: {Outcome.STEP_LIMIT, Outcome.TIME_LIMIT},
    Status.NOT_EMULATED: {Outcome.NOT_EMULATED, Outcome.EMULATOR_FAILED},
    Status.NEEDS: {
        *(Outcome.NEEDS_MODULE, Outcome.NEEDS_FILE, Outcome.NEEDS_OPERATOR),
        *(Outcome.NEEDS_NETWORK, Outcome.NEEDS_VARIABLE, Outcome.NEEDS_ARGUMENTS),
        *(Outcome.NEEDS_LAUNCHER, Outcome.NEEDS_INPUT, Outcome.NO_TESTS),
    },
    Status.STOPPED: {
        *(Outcome.ERROR, Outcome.FAILS_ALIKE, Outcome.EXITED),
        *(Outcome.MEMORY_LIMIT, Outcome.CRASHED),
    },
}
_STATUS = {outcome: status for status, outcomes in _KINDS.items() for outcome in outcomes}


def status(outcome: Outcome) -> Status:
    """Of which kind an end is."""
    return _STATUS[outcome]


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
class SeenShapes:
    """The shapes that a name had in a run.

    Attributes:
        path: Relative to the folder of the project.
        line: Where it is assigned, from 1.
        name: The name.
        shapes: The first different ones, in order.
    """

    path: str
    line: int
    name: str
    shapes: tuple[tuple[int, ...], ...]


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
