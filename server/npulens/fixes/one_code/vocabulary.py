"""What PyTorch offers for every device in place of what it offers for CUDA, by release."""

from enum import Enum
from typing import NamedTuple

from npulens.catalog.model import TorchVersion
from npulens.fixes.distributed import DATA_PARALLEL

CHECKED_SINCE = TorchVersion(2, 7)
"""Since this release `current_accelerator` can check whether the device is there."""


class Without(Enum):
    """What a function of `torch.cuda` does where there is no CUDA, which has to stay so."""

    SAME = "same"
    """Its counterpart does the same: it answers no or zero, or fails as well."""
    NOTHING = "nothing"
    """It does nothing, while its counterpart fails: there has to be a question before it."""
    ZERO = "zero"
    """It answers zero, while its counterpart fails."""


class Neutral(NamedTuple):
    """A name for every device.

    Attributes:
        text: It, below `torch.`.
        without: What is kept where there is no accelerator.
        since: The first release that has it; those that npulens covers have the others.
    """

    text: str
    without: Without = Without.SAME
    since: TorchVersion | None = None


_MEMORY = TorchVersion(2, 13)
"""There since 2.9, but until here they fail on Apple's GPUs.

Source: pytorch/pytorch issue 186430; torch/include/ATen/mps/MPSAllocatorInterface.h of 2.13.
"""
SCALED_SINCE = TorchVersion(2, 8)
"""Since this release gradients are scaled on Apple's GPUs, too (pytorch/pytorch pull 150255)."""

FUNCTIONS = {
    "is_available": Neutral("accelerator.is_available"),
    "device_count": Neutral("accelerator.device_count"),
    "current_device": Neutral("accelerator.current_device_index"),
    "set_device": Neutral("accelerator.set_device_index"),
    "synchronize": Neutral("accelerator.synchronize"),
    "current_stream": Neutral("accelerator.current_stream"),
    "set_stream": Neutral("accelerator.set_stream"),
    "empty_cache": Neutral("accelerator.empty_cache", Without.NOTHING, _MEMORY),
    "reset_peak_memory_stats": Neutral(
        "accelerator.reset_peak_memory_stats", Without.SAME, _MEMORY
    ),
    "reset_max_memory_allocated": Neutral(
        "accelerator.reset_peak_memory_stats", Without.SAME, _MEMORY
    ),
    "memory_allocated": Neutral("accelerator.memory_allocated", Without.ZERO, _MEMORY),
    "max_memory_allocated": Neutral("accelerator.max_memory_allocated", Without.ZERO, _MEMORY),
    "memory_reserved": Neutral("accelerator.memory_reserved", Without.ZERO, _MEMORY),
    "max_memory_reserved": Neutral("accelerator.max_memory_reserved", Without.ZERO, _MEMORY),
}
"""By their names below `torch.cuda`.

Source: PyTorch torch/accelerator/__init__.py and memory.py; torch_npu has them by
torch_npu/csrc/core/npu/impl/NPUGuardImpl.cpp and torch_npu/csrc/core/npu/NPUCachingAllocator.h.
"""

SHARED = {
    "manual_seed": Without.NOTHING,
    "manual_seed_all": Without.NOTHING,
    "seed": Without.NOTHING,
    "seed_all": Without.NOTHING,
    "empty_cache": Without.NOTHING,
    "reset_peak_memory_stats": Without.SAME,
    "reset_max_memory_allocated": Without.SAME,
    "memory_allocated": Without.ZERO,
    "max_memory_allocated": Without.ZERO,
    "memory_reserved": Without.ZERO,
    "max_memory_reserved": Without.ZERO,
    "default_stream": Without.SAME,
    "default_generators": Without.SAME,
    "memory._record_memory_history": Without.SAME,
    "memory._dump_snapshot": Without.SAME,
    "memory._snapshot": Without.SAME,
    "get_device_name": Without.SAME,
    "get_device_properties": Without.SAME,
    "mem_get_info": Without.SAME,
    "get_rng_state": Without.SAME,
    "set_rng_state": Without.SAME,
    "get_rng_state_all": Without.SAME,
    "set_rng_state_all": Without.SAME,
    "Event": Without.SAME,
    "Stream": Without.SAME,
    "stream": Without.SAME,
    "is_bf16_supported": Without.SAME,
    "memory_summary": Without.SAME,
    "memory_stats": Without.SAME,
}
"""What the module of each device has under the same name: `torch.get_device_module()`.

Source: PyTorch torch/__init__.py (get_device_module), torch/cuda/__init__.py and
torch/xpu/__init__.py; torch_npu torch_npu/npu/__init__.py.
"""

ON_APPLE = frozenset(
    {"manual_seed", "seed", "empty_cache", "get_rng_state", "set_rng_state", "Event"}
)
"""What of that the module of Apple's GPUs has; a script that asks for more fails there.

Source: PyTorch torch/mps/__init__.py.
"""
SEEDS = frozenset({"manual_seed", "manual_seed_all"})
"""`torch.manual_seed` seeds every device, so that these add nothing behind it."""

TENSOR_TYPES = {
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "DoubleTensor": "float64",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
"""Constructors in `torch.cuda` with the types of their tensors (PyTorch's page on data types)."""
AUTOCASTS = frozenset({"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"})
SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
NEUTRAL_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast"})
NEUTRAL_SCALERS = frozenset({"torch.amp.GradScaler", "torch.GradScaler"})
AUTOCAST_PARAMETERS = ("enabled", "dtype", "cache_enabled")
"""Of `torch.cuda.amp.autocast`; `torch.autocast` has them in another order."""
AUTOCAST_TYPES = {
    "torch.get_autocast_gpu_dtype": "get_autocast_dtype",
    "torch.set_autocast_gpu_dtype": "set_autocast_dtype",
}
"""Questions about autocast for CUDA, with those that take the type of a device.

Source: PyTorch torch/csrc/autograd/init.cpp, deprecations of the older names.
"""
TYPING = frozenset({"type", "set_default_tensor_type"})
"""What takes a type of tensors."""
DECORATORS = frozenset({"torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd"})
ACTIVITY = "torch.profiler.ProfilerActivity."
"""What the profiler records; `torch.profiler.supported_activities()` has those of the machine.

Source: PyTorch torch/profiler/profiler.py.
"""
MODULE_OF_AMP = "torch.cuda.amp"
_NAMES = (FUNCTIONS, SHARED, TENSOR_TYPES, AUTOCAST_TYPES, TYPING, DECORATORS, AUTOCASTS)
_NEUTRAL_NAMES = (DATA_PARALLEL, SCALERS, NEUTRAL_AUTOCASTS, NEUTRAL_SCALERS, {"torch.device"})
CALLED = frozenset(
    name.rpartition(".")[2] for names in (*_NAMES, *_NEUTRAL_NAMES) for name in names
)
"""The last parts of all names whose calls are written."""


def neutral(name: str, release: TorchVersion) -> Neutral | None:
    """What takes the place of a name below `torch.cuda`; `None` if there is nothing neutral.

    Args:
        name: The name, such as `empty_cache`.
        release: The release of PyTorch to run on.
    """
    found = FUNCTIONS.get(name)
    if found is not None and (found.since is None or release >= found.since):
        return found
    without = SHARED.get(name)
    return None if without is None else Neutral(f"get_device_module().{name}", without)


def neutral_name(name: str) -> str | None:
    """The name of `torch.accelerator` that takes the place of a qualified one, if there is one."""
    found = FUNCTIONS.get(name.removeprefix("torch.cuda."))
    return f"torch.{found.text}" if found is not None and name.startswith("torch.cuda.") else None
