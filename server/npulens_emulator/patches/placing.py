"""With several NPUs, `npu` without an index is the current one; C++ would take the first."""

from typing import Any

import torch
from torch import Tensor

from npulens_emulator.memory import DEVICE_COUNT, current_device


def _placed(device: Any) -> Any:
    if device == "npu" and isinstance(device, str):
        return torch.device("npu", current_device())
    if isinstance(device, torch.device) and device.type == "npu" and device.index is None:
        return torch.device("npu", current_device())
    return device


def patch() -> None:
    """Replace `to` and `npu` of tensors."""
    if DEVICE_COUNT == 1:
        return
    tensor: Any = Tensor
    original = tensor.to

    def to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        args = (_placed(args[0]), *args[1:]) if args else args
        if "device" in kwargs:
            kwargs["device"] = _placed(kwargs["device"])
        return original(self, *args, **kwargs)

    def npu(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if device is None:
            device = "npu"
        elif isinstance(device, int):
            device = torch.device("npu", device)
        return to(self, device, non_blocking=non_blocking, **kwargs)

    tensor.to, tensor.npu = to, npu
