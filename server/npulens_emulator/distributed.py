"""`hccl` as a process group over gloo, for one or several processes."""

from typing import Any

import torch
import torch.distributed

_dist: Any = torch.distributed


def is_hccl_available() -> bool:
    """Whether PyTorch was built with what stands in for HCCL."""
    return bool(_dist.is_available() and _dist.is_gloo_available())


def register() -> None:
    """Register the backends of the NPU, if PyTorch has process groups."""
    if not is_hccl_available():
        return
    from npulens_emulator.process_group import ProcessGroupHCCL as group  # noqa: N813

    def create(options: Any, unused: Any = None) -> Any:
        return group(options.store, options.group_rank, options.group_size, options.timeout)

    for name in ("hccl", "lccl"):
        _dist.Backend.register_backend(name, create, extended_api=True, devices=["npu"])
    _dist.is_hccl_available = is_hccl_available
    _dist.ProcessGroupHCCL = group
    _move_objects_on_npu(group)


def _move_objects_on_npu(group: Any) -> None:
    """Collectives of objects and the barrier ask the group for a device."""
    module = _dist.distributed_c10d
    original = module._get_object_coll_device

    def device_of(asked: Any = None) -> Any:
        if isinstance(asked or module._get_default_group(), group):
            return "npu"
        return original(asked)

    module._get_object_coll_device = device_of
