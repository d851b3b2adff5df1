"""What `torch.accelerator` asks of a device in C++, answered by the module of the emulated one."""

from types import ModuleType
from typing import Any

import torch

_SHARED = (
    "synchronize",
    "empty_cache",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "reset_peak_memory_stats",
    "current_stream",
    "set_stream",
)


def patch(npu: ModuleType) -> None:
    """Have these answered by what `torch.npu` is."""
    accelerator: Any = torch.accelerator
    for name in _SHARED:
        if hasattr(accelerator, name) and hasattr(npu, name):
            setattr(accelerator, name, getattr(npu, name))
