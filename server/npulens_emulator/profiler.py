"""`torch_npu.profiler`, which measures the CPU here."""

import enum
from typing import Any

import torch
import torch.profiler

from npulens_emulator.names import missing

_profiler: Any = torch.profiler

ProfilerAction = _profiler.ProfilerAction
tensorboard_trace_handler = _profiler.tensorboard_trace_handler


def schedule(
    wait: int,
    active: int,
    warmup: int = 0,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Any:
    """Which steps are recorded; unlike PyTorch's it takes numbers by position, in another order.

    Source: Ascend/pytorch: torch_npu/profiler/scheduler.py.
    """
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    late = {"skip_first_wait": skip_first_wait} if skip_first_wait else {}
    return _profiler.schedule(**numbers, skip_first=skip_first, **late)


class ProfilerActivity(enum.Enum):
    """What is measured."""

    CPU = 0
    NPU = 1


class _Words:
    """Constants that are taken and have no effect; each is its own name."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getattr__(self, name: str) -> str:
        if name in self.__dict__.get("_names", ()):
            return name
        raise AttributeError(name)


ProfilerLevel = _Words("Level_none", "Level0", "Level1", "Level2")
ExportType = _Words("Text", "Db")
AiCMetrics = _Words(
    *("AiCoreNone", "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB"),
    *("ResourceConflictRatio", "L2Cache", "MemoryAccess"),
)


class _ExperimentalConfig:
    """Options of the hardware."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


def supported_activities() -> set[ProfilerActivity]:
    """All."""
    return set(ProfilerActivity)


class profile(_profiler.profile):  # type: ignore[misc]  # noqa: N801
    """A profile of the CPU."""

    def __init__(
        self,
        *,
        activities: Any = None,
        experimental_config: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(activities=[_profiler.ProfilerActivity.CPU], **options)


def __getattr__(name: str) -> Any:
    return missing("torch_npu.profiler", "profiler", name)
