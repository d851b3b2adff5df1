"""Operators that PyTorch expects of each device, and that the CPU has under other names."""

from collections.abc import Callable, Mapping
from typing import Any

from npulens_emulator.kernels.batch_norm import BATCH_NORM
from npulens_emulator.kernels.layers import LAYERS
from npulens_emulator.kernels.storage import STORAGE

KERNELS: Mapping[str, Callable[..., Any]] = {**STORAGE, **LAYERS, **BATCH_NORM}
"""By the name of the operator in aten."""
