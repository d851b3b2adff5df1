"""Compares the training of an original with that of the migrated script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any, Literal

from npulens.workspace.verifying.verified_run import RunResult


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two runs differ first.

    Attributes:
        what: A loss, the norm of a parameter, or how many of them there are.
        step: From 1; of the losses, the number of the backward pass.
        parameter: The number of the parameter in its optimizer, from 1; 0 for a loss.
        original: The value in the original run.
        migrated: The value in the migrated run.
    """

    what: Literal["loss", "parameter", "count"]
    step: int
    parameter: int
    original: float
    migrated: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing two runs.

    Attributes:
        losses: How many losses were compared.
        steps: After how many steps parameters were.
        largest: The largest difference of losses, relative to losses above 1.
        divergence: The first difference above the tolerance, or None.
        problem: Why the original gave nothing to compare, or empty.
        original_ends: Whether the original stopped in no error, and no limit of time ended it.
        deciding: The rules without whose fixes the two agree.
    """

    losses: int
    steps: int
    largest: float
    divergence: Divergence | None
    problem: str = ""
    original_ends: bool = False
    deciding: tuple[str, ...] = ()


def compare(original: RunResult, migrated: RunResult, tolerance: float) -> Comparison:
    """Compare losses and norms of parameters, in the order of time."""
    one, other = original.main, migrated.main
    problem = _problem(original)
    if problem or one is None or other is None:
        ends = _ends(original)
        return Comparison(0, 0, 0.0, None, problem or "no process reported", original_ends=ends)
    pairs = list(zip(one["losses"], other["losses"], strict=False))
    largest = max((_distance(*pair) for pair in pairs), default=0.0)
    divergence = _loss_divergence(one["losses"], other["losses"], tolerance)
    if divergence is not None and divergence.what == "count" and _is_cut(one, other):
        divergence = None  # a scaler of half precision skips steps, which both go on from
    steps = min(len(one["parameters"]), len(other["parameters"]))
    if divergence is None:
        divergence = _parameter_divergence(one["parameters"], other["parameters"], tolerance)
    return Comparison(len(pairs), steps, largest, divergence, original_ends=True)


def _ends(original: RunResult) -> bool:
    stopped = any(report["end"]["kind"] in ("error", "exit") for report in original.reports)
    return not (original.timed_out or original.code or stopped)


def _is_cut(*reports: Mapping[str, Any]) -> bool:
    """Whether the limit of steps has ended both, so that either may have made more losses."""
    return all(report["end"]["kind"] == "steps" for report in reports)


def _problem(original: RunResult) -> str:
    """Why the original gave nothing to compare, or empty."""
    if original.timed_out:
        return "the time limit was reached"
    for report in original.reports:
        end = report["end"]
        if end["kind"] in ("error", "exit"):
            return f"{end['type']}: {end['message']}"
    if original.main is None or not original.main["steps"]:
        return original.output[-1] if original.output and original.code else "no optimizer step"
    return ""


def _distance(one: float, other: float) -> float:
    if not (isfinite(one) and isfinite(other)):
        same = one == other or (one != one and other != other)
        return 0.0 if same else float("inf")
    return abs(one - other) / max(1.0, abs(one))


def _loss_divergence(
    one: Sequence[float], other: Sequence[float], tolerance: float
) -> Divergence | None:
    for step, (before, after) in enumerate(zip(one, other, strict=False), 1):
        if _distance(before, after) > tolerance:
            return Divergence("loss", step, 0, before, after)
    if len(one) != len(other):
        return Divergence("count", min(len(one), len(other)) + 1, 0, len(one), len(other))
    return None


def _parameter_divergence(
    one: Sequence[Sequence[float]], other: Sequence[Sequence[float]], tolerance: float
) -> Divergence | None:
    for step, (before, after) in enumerate(zip(one, other, strict=False), 1):
        if len(before) != len(after):
            return Divergence("count", step, 0, len(before), len(after))
        for number, (first, second) in enumerate(zip(before, after, strict=True), 1):
            if not isclose(first, second, rel_tol=tolerance, abs_tol=tolerance):
                return Divergence("parameter", step, number, first, second)
    return None
