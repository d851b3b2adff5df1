"""What a run on the emulated NPU means."""

import signal
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from npulens.workspace.verifying.error_verdicts import (
    judge_error,
    last_words,
    means_out_of_memory,
)
from npulens.workspace.verifying.outcomes import Outcome, Site, Verdict
from npulens.workspace.verifying.verified_run import RunResult

PROBES = frozenset(
    f"torch.cuda.{name}"
    for name in ("is_available", "device_count", "is_initialized", "is_bf16_supported")
)
"""Questions that code for several devices asks; the answers say no."""


def cuda_calls(result: RunResult) -> list[Site]:
    """Where calls of CUDA were reached."""
    return _sites(result, "cuda_calls", lambda key: Site(key[0], key[1], key[2], 0))


def device_events(result: RunResult) -> list[Site]:
    """Where shapes depended on data and the host waited."""
    return _sites(result, "events", lambda key: Site(key[0], key[1], key[3], 0, key[2]))


def api_uses(result: RunResult, apis: Mapping[str, str]) -> list[Site]:
    """Where APIs were used that the NPU lacks or leaves to the host."""
    return _sites(result, "apis", lambda key: Site(key[0], key[1], key[2], 0, apis[key[2]]))


def type_uses(result: RunResult) -> list[Site]:
    """Where APIs got tensors of a type, or of more dimensions, than the NPU has them for."""
    return _sites(
        result, "types", lambda key: Site(key[0], key[1], f"{key[2]} ({key[3]})", 0, "type")
    )


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
        last: dict[str, Any] = next((end for end in ends if end["kind"] == "terminated"), {})
        return _judge_limit(Outcome.TIME_LIMIT, last, result, apis)
    if stopped is not None:
        return _judge_stop(stopped, result)
    steps = next((end for end in ends if end["kind"] == "steps"), None)
    if steps is not None:
        return _judge_limit(Outcome.STEP_LIMIT, steps, result, apis)
    if result.code:
        return _judge_crash(result)
    return judge_run(result, apis)


def _judge_limit(
    reached: Outcome, last: Mapping[str, Any], result: RunResult, apis: Mapping[str, str]
) -> Verdict:
    """What a run says up to the limit that has ended it."""
    until = judge_run(result, apis)
    is_unknown = until.outcome is Outcome.WITHOUT_NPU and reached is Outcome.TIME_LIMIT
    if until.outcome not in (Outcome.PASSED, Outcome.RAN) and not is_unknown:
        return until
    limits = result.limits
    is_given = limits.seconds_are_given if reached is Outcome.TIME_LIMIT else limits.steps_are_given
    outcome = Outcome.LIMIT_REACHED if is_given and not is_unknown else reached
    seconds = f"{limits.seconds:g} s" if reached is Outcome.TIME_LIMIT else ""
    return Verdict(outcome, last.get("path"), last.get("line"), seconds)


def judge_run(
    result: RunResult, apis: Mapping[str, str], *, trains_on_cpu: bool = False
) -> Verdict:
    """What a run says that came to its end."""
    left = [site for site in cuda_calls(result) if site.name not in PROBES]
    if left:
        return Verdict(Outcome.CUDA_LEFT, left[0].path, left[0].line, left[0].name)
    on_cpu = sum(report["trained"].get("cpu", 0) for report in result.reports)
    on_npu = sum(report["trained"].get("npu", 0) for report in result.reports)
    if on_cpu and not trains_on_cpu:
        steps = (each.get("first_step") for each in result.reports if each["trained"].get("cpu"))
        path, line = next(filter(None, steps), (None, None))
        return Verdict(Outcome.ON_CPU, path, line, f"{on_cpu}/{on_cpu + on_npu}")
    if not any(report["operators"] for report in result.reports):
        return Verdict(Outcome.WITHOUT_NPU)
    failing = [site for site in api_uses(result, apis) if site.kind == "fails"]
    if failing:
        return Verdict(Outcome.UNSUPPORTED, failing[0].path, failing[0].line, failing[0].name)
    return Verdict(Outcome.PASSED if result.steps else Outcome.RAN)


def _judge_crash(result: RunResult) -> Verdict:
    """What the end of a process says that left no word."""
    for line in result.output:
        if means_out_of_memory(line):
            return Verdict(Outcome.MEMORY_LIMIT, detail=line)
    if result.code > 0:
        return Verdict(Outcome.EXITED, detail=str(result.code))
    try:
        name = signal.Signals(-result.code).name
    except ValueError:
        name = str(-result.code)
    return Verdict(Outcome.CRASHED, detail=name)


def _judge_stop(end: Mapping[str, Any], result: RunResult) -> Verdict:
    if end["kind"] == "error":
        return judge_error(end, result)
    code, message = end["code"], end["message"]
    if code == 2 and not result.steps:
        words = next(last_words(result), "")
        return Verdict(Outcome.NEEDS_ARGUMENTS, end["path"], end["line"], words)
    is_text = message and message != str(code)
    detail = f"{code} ({message.splitlines()[0]})" if is_text else str(code)
    return Verdict(Outcome.EXITED, end["path"], end["line"], detail)
