"""Registers the device `npu` with PyTorch."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils import backend_registration

from npulens_emulator.fallback import fallback
from npulens_emulator.kernels import KERNELS
from npulens_emulator.kernels.sparse import SPARSE_KEY, sparse_kernels

_C: Any = torch._C
_registration: Any = backend_registration
_KEY = "PrivateUse1"
_libraries: list[torch.library.Library] = []
"""What is registered goes when its library goes."""


class _Hooks(_C._acc.PrivateUse1Hooks):  # type: ignore[misc]  # C++ has no types
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Guard(_C._acc.DeviceGuard):  # type: ignore[misc]
    def type_(self) -> Any:
        return _C._autograd.DeviceType.PrivateUse1


def register(module: ModuleType) -> None:
    """Register the device; `torch.npu` becomes the module."""
    _registration._setup_privateuseone_for_python_backend(
        rename="npu", backend_module=module, hook=_Hooks(), device_guard=_Guard()
    )
    library: Any = torch.library.Library
    any_operator, aten = library("_", "IMPL"), library("aten", "IMPL")
    any_operator.fallback(fallback, _KEY)
    _libraries.extend((any_operator, aten))
    for name, kernel in KERNELS.items():
        aten.impl(name, kernel, _KEY)
    for name, kernel in sparse_kernels():
        aten.impl(name, kernel, SPARSE_KEY)
    for key in ("Conjugate", "Negative"):  # the copy resolves lazy conjugates itself
        for name in ("_copy_from", "_copy_from_and_resize"):
            aten.impl(name, torch.library.fallthrough_kernel, key)
    _register_whole(aten)
    # The device guard in Python tells of one device. The backward pass in the calling thread
    # keeps the autograd engine from indexing a queue for each device.
    _C._set_multithreading_enabled(False)


def _register_whole(aten: Any) -> None:
    """Operators that run as one, where PyTorch would take them apart.

    Those on lists would run tensor by tensor; `mse_loss` would complain of a shape of its own, and
    `native_group_norm` of images whose channels lie last.
    """
    for overload in (torch.ops.aten.mse_loss.default, torch.ops.aten.native_group_norm.default):
        aten.impl(overload.__name__.partition(".")[0], _bound(overload), _KEY)
    for full in _C._dispatch_get_all_op_names():
        if not full.startswith("aten::_foreach_"):
            continue
        if any(
            _C._dispatch_has_kernel_for_dispatch_key(full, key)
            for key in ("CPU", "CompositeExplicitAutograd")
        ):
            name = full.removeprefix("aten::")
            base, _, overload = name.partition(".")
            packet = getattr(torch.ops.aten, base)
            aten.impl(name, _bound(getattr(packet, overload or "default")), _KEY)


def _bound(overload: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        return fallback(overload, *args, **kwargs)

    return kernel
