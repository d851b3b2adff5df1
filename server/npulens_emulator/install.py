"""Puts the emulated NPU into PyTorch."""

import os
from types import ModuleType
from typing import Any

import torch

from npulens_emulator import RELEASES, autocast, device, distributed, optim, patches
from npulens_emulator.errors import EmulatorError


def install(npu: ModuleType) -> None:
    """Register the device, its rules of precision and its process groups.

    Args:
        npu: What `torch.npu` becomes.

    Raises:
        EmulatorError: This PyTorch is too old, or has CUDA.
    """
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < RELEASES[0]:
        oldest = ".".join(map(str, RELEASES[0]))
        raise EmulatorError(
            f"the emulated NPU needs PyTorch {oldest} or newer, and this is {torch.__version__}"
        )
    if torch.cuda.is_available():
        raise EmulatorError("the emulated NPU needs a machine without CUDA")
    device.register(npu)
    patches.apply(npu)
    autocast.register()
    distributed.register()
    optim.NpuFusedOptimizerBase.device_type = "npu"
    checkpoint: Any = torch.utils.checkpoint
    checkpoint.DefaultDeviceType.set_device_type("npu")


def start_watching() -> None:
    """Watch the process, if it belongs to a verified run."""
    if os.environ.get("NPULENS_VERIFY"):
        from npulens_emulator.watch import torch_watch

        torch_watch.start()
