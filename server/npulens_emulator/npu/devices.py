"""The NPUs of the emulated machine, as `torch.npu` tells of them."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.memory import (
    DEVICE_COUNT,
    check_index,
    current_device,
    set_current_device,
)

NAME = "Ascend910B (emulated on the CPU)"
TOTAL_MEMORY = 64 << 30
"""In bytes."""

_SOC_A2 = 220
_initialized = False
_queued: list[Callable[[], object]] = []


def init() -> None:
    """Run what waited for the NPU."""
    global _initialized
    _initialized = True
    while _queued:
        _queued.pop(0)()


def _lazy_init() -> None:
    init()


def _lazy_call(function: Callable[[], object]) -> None:
    if _initialized:
        function()
    else:
        _queued.append(function)


def is_initialized() -> bool:
    """Whether the NPU was used."""
    return _initialized


def _is_in_bad_fork() -> bool:
    return False


def is_available() -> bool:
    """There is an NPU."""
    return True


def device_count() -> int:
    """How many there are."""
    return DEVICE_COUNT


def index_of(device: Any) -> int:
    """The index that a number, a name, a device or a `torch.npu.device` means.

    Raises:
        ValueError: It is no NPU.
        RuntimeError: There is no such NPU.
    """
    if device is None:
        return current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return current_device() if device < 0 else check_index(device)
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "npu":
            raise ValueError(f"Expected a npu device, but got: {device}")
        return check_index(current_device() if device.index is None else device.index)
    return check_index(getattr(device, "idx", current_device()))


def _get_device_index(device: Any = None, optional: bool = False, allow_cpu: bool = False) -> int:
    return index_of(device)


def set_device(device: Any) -> None:
    """Make an NPU the current one."""
    set_current_device(index_of(device))


def synchronize(device: Any = None) -> None:
    """Wait for the NPU, which is never behind."""
    from npulens_emulator import events

    index_of(device)
    events.tell("wait", "synchronize")


def get_device_name(device_name: Any = None) -> str:
    """The name of an NPU."""
    index_of(device_name)
    return NAME


_OF_CUDA_ALONE = (
    *("major", "minor", "is_multi_gpu_board", "is_integrated"),
    *("max_threads_per_multi_processor", "warp_size", "regs_per_multiprocessor", "gcnArchName"),
)


class _NPUDeviceProperties(SimpleNamespace):
    """What is known of an NPU; what CUDA knows besides is there and `None`.

    `multi_processor_count` is that of vector cores; releases up to 7.3 leave it `None`, too.

    Source: Ascend/pytorch, torch_npu/csrc/npu/Module.cpp.
    """


def get_device_properties(device_name: Any = None) -> SimpleNamespace:
    """What is known of an NPU; the figures are those of an A2."""
    return _NPUDeviceProperties(
        name=get_device_name(device_name),
        total_memory=TOTAL_MEMORY,
        cube_core_num=24,
        vector_core_num=48,
        multi_processor_count=48,
        L2_cache_size=192 << 20,
        **dict.fromkeys(_OF_CUDA_ALONE),
    )


def get_device_capability(device: Any = None) -> tuple[int, int] | None:
    """What `TORCH_NPU_DEVICE_CAPABILITY` says; an NPU has none of its own."""
    parts = os.environ.get("TORCH_NPU_DEVICE_CAPABILITY", "").split(".")
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        return int(parts[0]), int(parts[1])
    return None


def get_soc_version() -> int:
    """The number of the product, that of an A2."""
    return _SOC_A2


def can_device_access_peer(device_id: int, peer_device_id: int) -> bool:
    """Whether one NPU reads the memory of another."""
    check_index(device_id)
    check_index(peer_device_id)
    return False


def utilization(device: Any = None) -> int:
    """How busy an NPU is, in percent."""
    return 0


class device:  # noqa: N801 - the name in torch_npu
    """Makes an NPU the current one for a while."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        set_current_device(self.idx)

    def __exit__(self, *raised: object) -> None:
        set_current_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """Makes the NPU of a tensor the current one for a while."""

    def __init__(self, obj: Any) -> None:
        on_npu = isinstance(obj, Tensor) and obj.device.type == "npu"
        super().__init__(obj.get_device() if on_npu else None)
