"""Lets code that is written for CUDA use another device: arguments are translated.

For `torch_npu.contrib.transfer_to_npu`, and for running an original on the CPU.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch.distributed

_FACTORIES = """arange as_tensor bartlett_window blackman_window empty empty_like empty_strided eye
from_file frombuffer full full_like get_device_module hamming_window hann_window kaiser_window
linspace load logspace normal ones ones_like rand rand_like randint randint_like randn randn_like
randperm range scalar_tensor set_default_device sparse_compressed_tensor sparse_coo_tensor
sparse_csr_tensor tensor tril_indices triu_indices zeros zeros_like get_autocast_dtype""".split()
_METHODS = """new_empty new_empty_strided new_full new_ones new_tensor new_zeros
pin_memory""".split()
_DEVICES = ("device", "device_type", "map_location", "device_id")

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where CUDA leads instead.

    Attributes:
        device: `npu` or `cpu`.
        backend: What `nccl` becomes.
    """

    device: str
    backend: str

    def device_of(self, value: Any, numbers: bool = False) -> Any:
        """A device instead of one of CUDA; anything else as it is.

        Args:
            value: Any argument of a function.
            numbers: Whether an int is the index of a device.
        """
        if isinstance(value, str) and "cuda" in value:
            return value.replace("cuda", "npu") if self.device == "npu" else "cpu"
        if isinstance(value, torch.device) and value.type == "cuda":
            return self._at(value.index)
        if isinstance(value, dict):
            return {self.device_of(key): self.device_of(each) for key, each in value.items()}
        if numbers and isinstance(value, int) and not isinstance(value, bool):
            return self._at(value)
        return value

    def _at(self, index: int | None) -> torch.device:
        if self.device == "cpu" or index is None:
            return torch.device(self.device)
        return torch.device(self.device, index)

    def translating(self, function: Function, numbers: bool = False) -> Function:
        """The function with devices translated among its arguments."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            args = tuple(self.device_of(each, numbers) for each in args)
            for name in _DEVICES:
                if name in kwargs:
                    kwargs[name] = self.device_of(kwargs[name], True)
            ids = kwargs.get("device_ids")
            if isinstance(ids, list | tuple):
                kwargs["device_ids"] = type(ids)(self.device_of(each) for each in ids)
            return function(*args, **kwargs)

        return wrapper

    def with_backend(self, function: Function) -> Function:
        """The function with `nccl` translated, too."""

        def backend_of(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            return value.replace("nccl", self.backend).replace("cuda", self.device)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if "backend" in kwargs:
                kwargs["backend"] = backend_of(kwargs["backend"])
            if self.device == "cpu":
                kwargs.pop("device_id", None)
            return function(*(backend_of(each) for each in args), **kwargs)

        return wrapper

    def wrap(self, owner: Any, names: Iterable[str], numbers: bool = False) -> None:
        """Translate the arguments of functions of a module or class."""
        for name in names:
            function = getattr(owner, name, None)
            if function is not None:
                setattr(owner, name, self.translating(function, numbers))

    def apply(self, cuda: ModuleType) -> None:
        """Change PyTorch.

        Args:
            cuda: What `torch.cuda` becomes.
        """
        torch_module: Any = torch
        torch_module.cuda = cuda
        self.wrap(torch, _FACTORIES)
        self.wrap(torch.Tensor, _METHODS)
        self.wrap(torch.Tensor, ("to",), numbers=True)
        self.wrap(torch.nn.Module, ("to", "to_empty"), numbers=True)
        amp: Any = torch.amp
        self.wrap(amp.autocast_mode.autocast, ("__init__",))
        self.wrap(amp.GradScaler, ("__init__",))
        self.wrap(amp, ("custom_fwd", "custom_bwd"))
        self.wrap(torch.utils._device.DeviceContext, ("__init__",))
        torch_module.Generator = self._generator()
        torch_module.is_autocast_enabled = self._is_autocast_enabled()
        torch_module.jit.script = _as_it_is
        torch_module.jit.script_method = _as_it_is
        distributed: Any = torch.distributed
        if distributed.is_available():
            for name in ("init_process_group", "new_group"):
                setattr(distributed, name, self.with_backend(getattr(distributed, name)))
            self.wrap(torch.nn.parallel.DistributedDataParallel, ("__init__",))

    def _generator(self) -> Any:
        base: Any = torch.Generator
        device_of = self.device_of

        class Generator(base):  # type: ignore[misc]
            """A generator of the other device."""

            def __new__(cls, device: Any = "cpu") -> Any:
                return base.__new__(cls, device_of(device))

        return Generator

    def _is_autocast_enabled(self) -> Function:
        original: Any = torch.is_autocast_enabled

        @functools.wraps(original)
        def is_autocast_enabled(device_type: str | None = None) -> Any:
            return original(self.device if device_type is None else self.device_of(device_type))

        return is_autocast_enabled


def _as_it_is(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function
