"""Where `Tensor.to` and `Tensor.npu` put things.

With several NPUs, `npu` without an index is the current one; C++ would take the first. Copies to
the host that do not wait would ask for pinned memory, which is ordinary memory here.
"""

from typing import Any

import torch
from torch import Tensor

from npulens_emulator import events
from npulens_emulator.memory import DEVICE_COUNT, current_device, is_npu


def _placed(device: Any) -> Any:
    if DEVICE_COUNT == 1:
        return device
    if isinstance(device, str) and device == "npu":
        return torch.device("npu", current_device())
    if isinstance(device, torch.device) and device.type == "npu" and device.index is None:
        return torch.device("npu", current_device())
    return device


def _is_host(target: Any) -> bool:
    if isinstance(target, Tensor):
        target = target.device
    return str(target) == "cpu"


def patch() -> None:
    """Replace both."""
    tensor: Any = Tensor
    original = tensor.to

    def to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        args = (_placed(args[0]), *args[1:]) if args else args
        if "device" in kwargs:
            kwargs["device"] = _placed(kwargs["device"])
        target = args[0] if args else kwargs.get("device", kwargs.get("other"))
        if not (is_npu(self) and _is_host(target)):
            return original(self, *args, **kwargs)
        # Behind the device and the dtype stand non_blocking and copy.
        if not (kwargs.pop("non_blocking", False) or True in args[1:3]):
            return original(self, *args, **kwargs)
        with events.quiet():
            return original(self, *(False if each is True else each for each in args), **kwargs)

    def npu(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if device is None:
            device = "npu"
        elif isinstance(device, int):
            device = torch.device("npu", device)
        return to(self, device, non_blocking=non_blocking, **kwargs)

    tensor.to, tensor.npu = to, npu
