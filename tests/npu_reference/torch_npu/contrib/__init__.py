"""Modules and functions built on the operators."""

from torch_npu.contrib import function, module

__all__ = ["function", "module"]
