"""`from torch_npu.contrib import transfer_to_npu`: code for CUDA runs on the NPU."""

import sys
import warnings
from types import ModuleType
from typing import Any

import torch
import torch.distributed

from npulens_emulator.redirection import Redirection

_SUBMODULES = ("amp", "random", "memory", "streams")
_TRANSLATED = """get_device_properties get_device_name get_device_capability set_device synchronize
mem_get_info memory_allocated max_memory_allocated memory_reserved max_memory_reserved
current_stream default_stream utilization get_rng_state""".split()
_ORIGINAL = ("graphs", "nvtx", "OutOfMemoryError")
_OTHER_NAMES = {"CUDAGraph": "NPUGraph", "DoubleTensor": "FloatTensor"}


class _Cuda(ModuleType):
    """`torch.cuda` after the switch: names are those of `torch.npu`.

    What PyTorch itself takes from it, which is private, stays as it was.
    """

    def __init__(self, original: ModuleType) -> None:
        super().__init__("torch.cuda")
        self._original = original
        self.__path__ = original.__path__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _ORIGINAL:
            return getattr(self._original, name)
        npu: Any = torch.npu  # type: ignore[attr-defined]
        return getattr(npu, _OTHER_NAMES.get(name, name))


def apply() -> None:
    """Switch PyTorch over."""
    warnings.warn(
        "transfer_to_npu: torch.cuda means torch.npu and nccl means hccl from now on",
        ImportWarning,
        stacklevel=2,
    )
    npu: Any = torch.npu  # type: ignore[attr-defined]
    cuda: Any = _Cuda(torch.cuda)
    redirection = Redirection("npu", "hccl")
    for name in _TRANSLATED:
        setattr(cuda, name, redirection.translating(getattr(npu, name)))
    npu.device.__init__ = redirection.translating(npu.device.__init__)  # streams enter it, too
    redirection.apply(cuda)
    sys.modules["torch.cuda"] = cuda
    for name in _SUBMODULES:
        sys.modules[f"torch.cuda.{name}"] = getattr(npu, name)
    for name in ("autocast_mode", "grad_scaler", "common"):
        sys.modules[f"torch.cuda.amp.{name}"] = getattr(npu.amp, name)
    tensor: Any = torch.Tensor
    module: Any = torch.nn.Module
    tensor.cuda, tensor.is_cuda, module.cuda = tensor.npu, tensor.is_npu, module.npu
    distributed: Any = torch.distributed
    if distributed.is_available():
        distributed.is_nccl_available = distributed.is_hccl_available
        distributed.Backend.default_device_backend_map.pop("cuda", None)
