"""`torch.Generator` for the NPU."""

from typing import Any

import torch

from npulens_emulator.generators import belong_to_npu
from npulens_emulator.patches.storages import names_npu

_Base: Any = torch._C.Generator


class _Kind(type(_Base)):  # type: ignore[misc]
    """Generators made in C++ are instances of the class, too."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _Base)


class _Generator(_Base, metaclass=_Kind):  # type: ignore[misc]
    """A generator of the CPU that operators on the NPU take."""

    def __new__(cls, device: Any = "cpu") -> Any:
        if isinstance(device, int) and not isinstance(device, bool):
            device = f"npu:{device}"
        if not names_npu(device):
            return _Base.__new__(cls, device)
        made = _Base.__new__(cls, "cpu")
        belong_to_npu(made)
        made._npu = torch.device("npu", torch.device(device).index or 0)
        return made

    @property
    def device(self) -> Any:
        """The device it draws for."""
        return self.__dict__.get("_npu") or _Base.device.__get__(self)


def patch() -> None:
    """Replace the class."""
    _Generator.__module__, _Generator.__qualname__, _Generator.__name__ = (
        "torch",
        "Generator",
        "Generator",
    )
    torch.Generator = _Generator  # type: ignore[misc]
