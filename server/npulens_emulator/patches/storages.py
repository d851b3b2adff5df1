"""Storages on the NPU, as `torch.load` makes them and as sharded parameters free them."""

from typing import Any

import torch
from torch.utils import backend_registration

from npulens_emulator.errors import NotEmulatedError
from npulens_emulator.memory import to_npu


def names_npu(device: object) -> bool:
    """Whether something is `"npu"`, `"npu:1"` or such a device."""
    if isinstance(device, str):
        return device.partition(":")[0] == "npu"
    return isinstance(device, torch.device) and device.type == "npu"


def patch() -> None:
    """Let `torch.UntypedStorage(..., device="npu")` work, and `resize_`."""
    storage: Any = torch.UntypedStorage
    original, original_resize = storage.__new__, storage.resize_

    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not names_npu(kwargs.get("device")):
            return original(cls, *args, **kwargs)
        content = args[0] if args else kwargs.get("size", 0)
        if isinstance(content, int):
            data = torch.empty(content, dtype=torch.uint8)
        else:
            data = torch.tensor(list(content), dtype=torch.uint8)
        return to_npu(data, torch.device(kwargs["device"]).index or 0).untyped_storage()

    def resize(self: Any, size: int) -> Any:
        """What is freed keeps its memory, until it is allocated again."""
        if self.device.type != "npu":
            return original_resize(self, size)
        if size > self.nbytes():
            raise NotEmulatedError("storages of the NPU do not grow")
        return self

    storage.__new__, storage.resize_ = made, resize
    registration: Any = backend_registration
    registration._generate_storage_methods_for_privateuse1_backend("npu")
