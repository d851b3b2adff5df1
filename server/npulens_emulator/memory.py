"""Tensors of the NPU over host memory.

A tensor of the NPU is a genuine tensor of PyTorch's private-use device whose storage is ordinary
host memory. It comes from a CPU tensor by way of DLPack: the tag of the device in the capsule is
rewritten, from 1 (CPU) to 12 (extension), which PyTorch takes for the private-use device. Nothing
is copied either way.
"""

import ctypes
import os
from typing import Any, TypeGuard

import torch
from torch import Tensor

from npulens_emulator.errors import NotEmulatedError

_CPU, _EXTENSION = 1, 12
_C: Any = torch._C
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_TwoInts = ctypes.c_int32 * 2
_DEVICE_OFFSET = 8
"""Where DLTensor holds the type and the index of the device, in bytes: behind a pointer."""

DEVICE_COUNT = int(os.environ.get("NPULENS_EMULATED_NPUS", "1"))
"""How many NPUs the emulated machine has."""

_current = 0


def current_device() -> int:
    """The index of the NPU that `npu` without an index means."""
    return _current


def set_current_device(index: int) -> None:
    """Make an NPU the current one."""
    global _current
    _current = check_index(index)


def check_index(index: int) -> int:
    """The index itself.

    Raises:
        RuntimeError: There is no such NPU.
    """
    if not 0 <= index < DEVICE_COUNT:
        count = f"the emulated machine has {DEVICE_COUNT}"
        raise RuntimeError(f"Invalid device ID. npu:{index} is none of its NPUs: {count}")
    return index


def retag(tensor: Tensor, kind: int, index: int) -> Tensor:
    """The same memory as a tensor of another device, given by its DLPack type."""
    capsule = _C._to_dlpack(tensor)
    device = _pointer(capsule, b"dltensor") + _DEVICE_OFFSET
    _TwoInts.from_address(device)[:] = [kind, index]
    result: Tensor = _C._from_dlpack(capsule)
    return result


def to_npu(tensor: Tensor, index: int | None = None) -> Tensor:
    """A CPU tensor as one of an NPU, over the same memory.

    Raises:
        NotEmulatedError: The tensor is quantised, or sparse in rows or blocks.
    """
    if tensor.layout is torch.sparse_coo:
        parts = (to_npu(tensor._indices(), index), to_npu(tensor._values(), index))
        return torch.sparse_coo_tensor(*parts, tensor.shape, is_coalesced=tensor.is_coalesced())
    if tensor.layout is not torch.strided or tensor.is_quantized:
        kind = "quantised" if tensor.is_quantized else f"{tensor.layout}"
        raise NotEmulatedError(f"tensors that are {kind} are not emulated on the NPU")
    lazy: Any = tensor
    if lazy._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return retag(tensor, _EXTENSION, _current if index is None else index)


def to_cpu(tensor: Tensor) -> Tensor:
    """A tensor of an NPU as one of the CPU, over the same memory and without gradients."""
    if tensor.layout is torch.sparse_coo:
        parts = (to_cpu(tensor._indices()), to_cpu(tensor._values()))
        return torch.sparse_coo_tensor(*parts, tensor.shape, is_coalesced=tensor.is_coalesced())
    out = retag(tensor, _CPU, 0)
    if tensor.is_conj():
        out = out.conj()
    if tensor.is_neg():
        out = torch._neg_view(out)
    return out


def is_npu(value: object) -> TypeGuard[Tensor]:
    """Whether something is a tensor of an NPU."""
    return isinstance(value, Tensor) and value.device.type == "npu"


def rebind(target: Tensor, cpu_value: Tensor, index: int = 0) -> Tensor:
    """Let an existing tensor of the NPU own the memory, shape and strides of a CPU tensor."""
    fresh = to_npu(cpu_value, index)
    set_storage(
        target,
        fresh.untyped_storage(),
        int(fresh.storage_offset()),
        list(fresh.shape),
        list(fresh.stride()),
    )
    return target


def set_storage(
    target: Tensor, storage: Any, offset: int, size: list[int], stride: list[int]
) -> Tensor:
    """`target.set_` with the kernel of the CPU, which only writes metadata."""
    kernel: Any = torch.ops.aten.set_.source_Storage_storage_offset
    result: Tensor = kernel._op_dk(_C.DispatchKey.CPU, target, storage, offset, size, stride)
    return result


def contiguous_strides(size: list[int]) -> list[int]:
    """The strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for each in reversed(size):
        strides.insert(0, step)
        step *= max(each, 1)
    return strides
