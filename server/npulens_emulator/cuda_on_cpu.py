"""Runs code for CUDA on the CPU, to compare a migrated run with: one GPU that is the CPU."""

import contextlib
import os
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.distributed

from npulens_emulator.patches import compiling, pinning
from npulens_emulator.redirection import Redirection


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _answering(answer: Any) -> Any:
    """A function of its own for each name: PyTorch's compiler keeps a table of functions."""
    return lambda *args, **kwargs: answer


def _manual_seed(seed: int) -> None:
    """The GPU draws from the generator of the CPU, as the emulated NPU does beside it."""
    torch.default_generator.manual_seed(int(seed))


def _itself(value: Any, *args: Any, **kwargs: Any) -> Any:
    return value


class _Stream:
    """A stream; all is done in the order of the calls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cpu")

    wait_event = wait_stream = synchronize = _nothing

    def record_event(self, event: Any = None) -> Any:
        """An event."""
        return event or _Event()

    def query(self) -> bool:
        """All is done."""
        return True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: object) -> None:
        pass


class _Event:
    """An event; its time is that of the host."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.time = 0.0

    wait = synchronize = _nothing

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self.time = time.perf_counter()

    def query(self) -> bool:
        """It has happened."""
        return True

    def elapsed_time(self, end: "_Event") -> float:
        """In milliseconds."""
        return (end.time - self.time) * 1e3


class _device(contextlib.nullcontext[None]):  # noqa: N801
    """The only device."""

    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self.idx = 0


_NOTHING = """set_device synchronize empty_cache reset_peak_memory_stats ipc_collect init _lazy_init
reset_max_memory_allocated reset_max_memory_cached set_stream set_per_process_memory_fraction
seed seed_all""".split()
_ZERO = """current_device memory_allocated max_memory_allocated memory_reserved max_memory_reserved
memory_cached max_memory_cached utilization""".split()


_VERSION = "12.8"
"""What scripts read that choose by the release of CUDA."""


class _Cuda(ModuleType):
    """`torch.cuda` of a machine whose only GPU is the CPU; the rest is that of PyTorch."""

    def __init__(self, original: Any) -> None:
        super().__init__("torch.cuda")
        self._original = original
        content = self.__dict__
        content |= {name: _answering(None) for name in _NOTHING}
        content |= {name: _answering(0) for name in _ZERO}
        content |= {
            "__path__": original.__path__,
            "manual_seed": _manual_seed,
            "manual_seed_all": _manual_seed,
            "is_available": _answering(True),
            "is_initialized": _answering(True),
            "device_count": _answering(1),
            "is_bf16_supported": _answering(True),
            "get_device_name": lambda device=None: "NVIDIA A100 (the CPU)",
            "get_device_capability": lambda device=None: (8, 0),
            "get_device_properties": lambda device=None: SimpleNamespace(
                name="the CPU", total_memory=64 << 30, major=8, minor=0, multi_processor_count=108
            ),
            "mem_get_info": lambda device=None: (64 << 30, 64 << 30),
            "memory_summary": lambda *args, **kwargs: "",
            "memory_stats": lambda device=None: {},
            "get_rng_state": lambda device=None: torch.get_rng_state(),
            "get_rng_state_all": lambda: [torch.get_rng_state()],
            "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
            "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
            "Stream": _Stream,
            "Event": _Event,
            "current_stream": lambda device=None: _Stream(),
            "default_stream": lambda device=None: _Stream(),
            "stream": lambda stream: contextlib.nullcontext(stream),
            "device": _device,
        }
        for name in ("Float", "Double", "Half", "BFloat16", "Byte", "Int", "Long", "Bool"):
            content[f"{name}Tensor"] = getattr(torch, f"{name}Tensor")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def apply() -> None:
    """Switch PyTorch over."""
    original = torch.cuda
    cuda = _Cuda(original)
    compiling.patch()
    pinning.patch()
    Redirection("cpu", "gloo").apply(cuda)
    sys.modules["torch.cuda"] = cuda
    version: Any = torch.version
    version.cuda = _VERSION
    tensor: Any = torch.Tensor
    module: Any = torch.nn.Module
    tensor.cuda = module.cuda = _itself
    storages: tuple[Any, ...] = (torch.UntypedStorage, torch.TypedStorage)
    for storage in storages:
        storage.cuda = _itself
    tensor.is_cuda = property(lambda self: True)
    tensor.record_stream = _nothing
    # Which device there is is asked at import of this module, and in it.
    data_parallel: Any = sys.modules["torch.nn.parallel.data_parallel"]
    data_parallel._get_available_device_type = lambda: None
    _without_accelerator()
    _without_device_ids()


def _without_accelerator() -> None:
    """PyTorch built for CUDA counts it as the accelerator, and fails where there is no driver."""
    accelerator: Any = torch.accelerator
    accelerator.is_available = _answering(False)
    accelerator.current_accelerator = _answering(None)
    accelerator.device_count = _answering(0)


def _without_device_ids() -> None:
    if not torch.distributed.is_available():
        return
    parallel: Any = torch.nn.parallel.DistributedDataParallel
    original = parallel.__init__

    def made(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("device_ids", None)
        kwargs.pop("output_device", None)
        original(self, module, *args[2:], **kwargs)

    parallel.__init__ = made


def _autoload() -> None:
    """PyTorch calls this when it is imported in the run of an original."""
    apply()
    if os.environ.get("NPULENS_VERIFY"):
        from npulens_emulator.watch import torch_watch

        torch_watch.start_original()
