"""`torch.Stream` and `torch.Event`, which make those of the NPU where it is the accelerator."""

from types import ModuleType
from typing import Any

import torch

from npulens_emulator.patches.storages import names_npu


class _Kind(type):
    """Those of the NPU, and those made in C++, are instances, too."""

    _kinds: tuple[Any, ...]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls._kinds)


def _general(name: str, base: Any, of_npu: Any, takes_device: bool) -> Any:
    def made(cls: Any, device: Any = None, **options: Any) -> Any:
        if device is not None and not names_npu(device):
            return base(device, **options)
        return of_npu(device, **options) if takes_device else of_npu(**options)

    content = {"__new__": made, "_kinds": (base, of_npu), "__module__": "torch"}
    return _Kind(name, (), content)


def patch(npu: ModuleType) -> None:
    """Replace both classes."""
    module: Any = torch
    of_npu: Any = npu
    module.Stream = _general("Stream", module.Stream, of_npu.Stream, takes_device=True)
    module.Event = _general("Event", module.Event, of_npu.Event, takes_device=False)
