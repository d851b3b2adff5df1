"""Stands in for torch_npu in a verified run: the NPU is emulated on the CPU."""

import os
import sys
from typing import Any

if "torch" not in sys.modules:
    # PyTorch would load this package, which is being loaded.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"], _before = (
        "0",
        os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD"),
    )
    import torch

    if _before is None:
        del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    else:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _before
import torch

from npulens_emulator.device_operators import DEVICE_OPERATORS
from npulens_emulator.install import install, start_watching
from npulens_emulator.names import missing
from torch_npu import npu

__version__ = torch.__version__.partition("+")[0]
install(npu)
globals().update(DEVICE_OPERATORS)

from torch_npu import contrib, distributed, optim, profiler, utils  # noqa: E402

start_watching()


def _autoload() -> None:
    """PyTorch calls this when it is imported; by then everything is done."""


def __getattr__(name: str) -> Any:
    return missing("torch_npu", "operators", name)
