"""Pinned memory, which is ordinary memory that is known to have been pinned."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._device
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

_FACTORIES = """empty zeros ones full rand randn tensor empty_like zeros_like ones_like arange
empty_strided""".split()
_METHODS = "new_empty new_zeros new_ones new_full new_tensor".split()

_weak: Any = StorageWeakRef
_pinned: dict[int, Any] = {}
"""By address; another storage may have it once the pinned one is gone."""


def _pin_memory(tensor: Tensor, device: Any = None) -> Tensor:
    if tensor.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
    made = tensor.clone(memory_format=torch.preserve_format)
    storage = made.untyped_storage()
    _pinned[storage.data_ptr()] = _weak(storage)
    return made


def _is_pinned(tensor: Tensor, device: Any = None) -> bool:
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or not tensor.numel():
        return False
    pinned = _pinned.get(tensor.untyped_storage().data_ptr())
    return pinned is not None and not pinned.expired()


def _pinning(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its parameter `pin_memory`, which the CPU alone would refuse."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("pin_memory", False):
            return function(*args, **kwargs).pin_memory()
        return function(*args, **kwargs)

    return wrapper


def patch() -> None:
    """Replace the methods, and the functions that take `pin_memory`."""
    devices: Any = torch.utils._device
    devices._device_constructors()  # what `with torch.device(...)` changes is told by identity
    tensor: Any = Tensor
    tensor.pin_memory, tensor.is_pinned = _pin_memory, _is_pinned
    for owner, names in ((torch, _FACTORIES), (tensor, _METHODS)):
        for name in names:
            original = getattr(owner, name)
            wrapper = _pinning(original)
            _stay_builtin(original, wrapper)
            setattr(owner, name, wrapper)


def _stay_builtin(original: Any, wrapper: Any) -> None:
    """TorchScript knows functions of C++ by identity, and would compile others."""
    builtins: Any = torch.jit._builtins
    operator = builtins._find_builtin(original)
    if operator is not None:
        builtins._register_builtin(wrapper, operator)
