"""What `torch.accelerator` asks of a device in C++, answered by the module of the emulated one."""

from types import ModuleType
from typing import Any

import torch

_RENAMED = {
    "get_memory_info": "mem_get_info",
    "set_device_index": "set_device",
    "set_device_idx": "set_device",
    "current_device_index": "current_device",
    "current_device_idx": "current_device",
}
_SHARED = (
    "synchronize",
    "empty_cache",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "reset_peak_memory_stats",
    "memory_stats",
    "current_stream",
    "set_stream",
)


def patch(npu: ModuleType) -> None:
    """Have these answered by what `torch.npu` is."""
    accelerator: Any = torch.accelerator
    for name, ours in ({name: name for name in _SHARED} | _RENAMED).items():
        if hasattr(accelerator, name) and hasattr(npu, ours):
            setattr(accelerator, name, getattr(npu, ours))
