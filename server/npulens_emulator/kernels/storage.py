"""Making, copying and resizing tensors of the NPU."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from npulens_emulator import events
from npulens_emulator.memory import (
    check_index,
    contiguous_strides,
    current_device,
    is_npu,
    rebind,
    set_storage,
    to_cpu,
    to_npu,
)


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy between devices, or within the NPU."""
    if is_npu(source) and not is_npu(target) and not non_blocking:
        events.tell("wait", "copy_to_host")
    from_memory = to_cpu(source) if is_npu(source) else source
    to_memory = to_cpu(target) if is_npu(target) else target
    to_memory.copy_(from_memory)
    return target


def copy_from_and_resize(source: Tensor, target: Tensor) -> Tensor:
    """Copy, and give the target the shape of the source."""
    from_memory = to_cpu(source) if is_npu(source) else source
    if is_npu(target):
        return rebind(target, from_memory.clone())
    events.tell("wait", "copy_to_host")
    target.resize_(from_memory.shape)
    return target.copy_(from_memory)


def _index(device: torch.device | None) -> int:
    if device is None or device.index is None:
        return current_device()
    return check_index(device.index)


def efficient_zeros(
    size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    """Zeros."""
    return to_npu(torch.zeros(size, dtype=dtype), _index(device))


def empty(
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    """Memory that nothing was written to."""
    if memory_format in (None, torch.preserve_format):
        memory_format = torch.contiguous_format
    made = torch.empty(size, dtype=dtype, memory_format=memory_format, device="cpu")
    return to_npu(made, _index(device))


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    """The same with given strides."""
    return to_npu(torch.empty_strided(size, stride, dtype=dtype, device="cpu"), _index(device))


def resize(tensor: Tensor, size: Any, *, memory_format: Any = None) -> Tensor:
    """Another shape; what fits of the values stays."""
    size = list(size)
    needed = (math.prod(size) + int(tensor.storage_offset())) * tensor.element_size()
    if needed > tensor.untyped_storage().nbytes():
        old = to_cpu(tensor)
        new = torch.empty(size, dtype=tensor.dtype)
        kept = min(old.numel(), new.numel())
        if kept:
            new.view(-1)[:kept] = old.reshape(-1)[:kept]
        return rebind(tensor, new)
    offset = int(tensor.storage_offset())
    return set_storage(tensor, tensor.untyped_storage(), offset, size, contiguous_strides(size))


def set_storage_with_shape(
    tensor: Tensor, source: Any, offset: int, size: Any, stride: Any = ()
) -> Tensor:
    """Take over a storage."""
    size, stride = list(size), list(stride)
    if len(stride) != len(size):
        stride = contiguous_strides(size)
    return set_storage(tensor, source, offset, size, stride)


def set_whole_storage(tensor: Tensor, source: Any) -> Tensor:
    """Take over a storage as a vector."""
    return set_storage(tensor, source, 0, [source.nbytes() // tensor.element_size()], [1])


def set_tensor(tensor: Tensor, source: Tensor) -> Tensor:
    """Share the memory of another tensor."""
    offset = int(source.storage_offset())
    storage = source.untyped_storage()
    return set_storage(tensor, storage, offset, list(source.shape), list(source.stride()))


def set_nothing(tensor: Tensor) -> Tensor:
    """Become empty."""
    return rebind(tensor, torch.empty(0, dtype=tensor.dtype))


def record_stream(tensor: Tensor, stream: Any) -> None:
    """Memory of the host is not given back by streams."""


def may_share_a_variable(tensor: Tensor, other: Tensor) -> bool:
    """Whether `tensor.data = other` works, so that tied weights stay tied when a module moves.

    torch_npu has a kernel of its own for this, where other private devices say no.
    """
    return all(each.layout is torch.strided for each in (tensor, other))


STORAGE: dict[str, Callable[..., Any]] = {
    "_copy_from": copy_from,
    "_copy_from_and_resize": copy_from_and_resize,
    "_efficientzerotensor": efficient_zeros,
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "resize_": resize,
    "set_.source_Storage_storage_offset": set_storage_with_shape,
    "set_.source_Storage": set_whole_storage,
    "set_.source_Tensor": set_tensor,
    "set_": set_nothing,
    "record_stream": record_stream,
    "_has_compatible_shallow_copy_type": may_share_a_variable,
}
