"""`torch.compile` runs eagerly: graphs need the compiler of the hardware.

Optimizers import PyTorch's compiler just to tell it to leave them alone, which takes longer than
all else that PyTorch imports. As nothing is compiled, it is only loaded by who asks for more.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

_COMPILER = "torch._dynamo"


def _eager(model: Any = None, **options: Any) -> Any:
    """The model itself, or a decorator that gives it."""
    if model is None:
        same: Callable[[Any], Any] = lambda function: function  # noqa: E731
        return same
    return model


class _Compiler(ModuleType):
    """The compiler with what optimizers ask of it; the rest loads the real one."""

    @staticmethod
    def graph_break(msg: str = "") -> None:
        """Nothing is compiled."""

    @staticmethod
    def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
        """The function itself, or a decorator that gives it."""
        return _eager(fn)

    def __getattr__(self, name: str) -> Any:
        if name in ("__spec__", "__file__"):  # asked by who only looks at modules
            raise AttributeError(name)
        if sys.modules.get(_COMPILER) is self:
            del sys.modules[_COMPILER]
        return getattr(importlib.import_module(_COMPILER), name)


def patch() -> None:
    """Replace `torch.compile`, and the compiler as long as nobody needs it."""
    torch.compile = _eager
    if _COMPILER not in sys.modules:
        sys.modules[_COMPILER] = _Compiler(_COMPILER)
