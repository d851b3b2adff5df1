"""Runs scripts in a process of its own: on the CPU, on an emulated NPU, on recorded calls of CUDA.

    python one_code_runs.py cpu|npu|cuda < scripts.json > outcomes.json

An outcome is what a script printed, its error, and on `cuda` what it asked of the device.
"""

import contextlib
import io
import json
import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda")


def run(source: str) -> dict[str, Any]:
    """What a script prints, and its error."""
    printed = io.StringIO()
    error = ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(f"import torch\n{source}", "script.py", "exec"), {"__name__": "__main__"})
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
    return {"printed": printed.getvalue(), "error": error}


class _Recorded(TorchFunctionMode):
    """Tensors stay on the host and say that they are on CUDA; moves and devices are noted."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self._events = events
        self._moved: set[int] = set()
        self._kept: list[Any] = []

    def __torch_function__(
        self, function: Any, kinds: Any, given: Any = (), named: Any = None
    ) -> Any:
        named = dict(named or {})
        name = getattr(function, "__name__", "")
        if name == "__get__" and given and isinstance(given[0], torch.Tensor):
            return self._property(function, given)
        is_method = bool(given) and isinstance(given[0], torch.Tensor)
        to_cuda = name == "to" and any(map(_is_cuda, (*given[1:], *named.values())))
        if is_method and (name == "cuda" or to_cuda):
            self._events.append("moves a tensor")
            return self._noted(given[0].clone())
        if _is_cuda(named.get("device")):
            self._events.append(f"makes {name}")
            return self._noted(function(*given, **{**named, "device": "cpu"}))
        result = function(*given, **named)
        if any(id(each) in self._moved for each in given):
            self._noted(result)
        return result

    def _property(self, function: Any, given: Any) -> Any:
        value = function(*given)
        if id(given[0]) not in self._moved:
            return value
        if isinstance(value, torch.device):
            return CUDA
        return True if function is torch.Tensor.is_cuda.__get__ else value  # type: ignore[attr-defined]

    def _noted(self, result: Any) -> Any:
        if isinstance(result, torch.Tensor):
            self._moved.add(id(result))
            self._kept.append(result)  # so that nothing else gets its identity
        return result


def _is_cuda(value: object) -> bool:
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return type(value) is int


def record(source: str) -> dict[str, Any]:
    """The same, with a CUDA of recorded calls."""
    events: list[str] = []
    undone = list(_put_in(events))
    try:
        with _Recorded(events):
            outcome = run(source)
    finally:
        for owner, name, value in undone:
            setattr(owner, name, value)
    return {**outcome, "events": events}


class _Nothing:
    """A stream or an event."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


def _put_in(events: list[str]) -> Any:
    """Have functions of devices note that they are called; what was there before is given."""

    def noting(name: str, answer: Any) -> Any:
        def function(*given: Any, **named: Any) -> Any:
            events.append(name)
            return answer

        return function

    cuda: Any = torch.cuda
    accelerator: Any = torch.accelerator
    activity: Any = torch.profiler.ProfilerActivity
    answers: dict[str, Any] = {
        "device_count": 1, "set_device": None, "synchronize": None, "empty_cache": None,
        "manual_seed": None, "manual_seed_all": None, "reset_peak_memory_stats": None,
        "memory_allocated": 0, "max_memory_allocated": 0, "current_stream": _Nothing(),
        "Stream": _Nothing(), "Event": _Nothing(), "stream": _Nothing(),
    }  # fmt: skip
    same = {"set_device": "set_device_index"}
    changes: list[tuple[Any, str, Any]] = []
    for name, answer in answers.items():
        noted = noting(name, answer)
        changes.append((cuda, name, noted))
        if hasattr(accelerator, same.get(name, name)):
            changes.append((accelerator, same.get(name, name), noted))
    changes += [
        (cuda, "is_available", lambda: True),
        (accelerator, "is_available", lambda: True),
        (accelerator, "current_accelerator", lambda check_available=False: CUDA),
        (torch, "get_device_module", lambda device=None: cuda),
        (torch.profiler, "supported_activities", lambda: {activity.CPU, activity.CUDA}),
        (torch.nn.Module, "cuda", _moving(events)),
        (torch.nn.Module, "to", _moving(events)),
        (cuda, "FloatTensor", lambda values: torch.tensor(values, device="cuda")),
    ]
    for owner, name, value in changes:
        yield owner, name, getattr(owner, name)
        setattr(owner, name, value)


def _moving(events: list[str]) -> Any:
    def move(self: Any, *given: Any, **named: Any) -> Any:
        events.append("moves a module")
        return self

    return move


def main() -> None:
    mode = sys.argv[1]
    if mode == "npu":
        import torch_npu  # noqa: F401
    scripts = json.load(sys.stdin)
    work = record if mode == "cuda" else run
    outcomes = {name: work(source) for name, source in scripts.items()}
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
