from typing import Any

from npulens_emulator.contrib.function import matmul_transpose
from npulens_emulator.contrib.module import NpuDropPath
from npulens_emulator.names import missing
from torch_npu.contrib import function, module


def __getattr__(name: str) -> Any:
    return missing("torch_npu.contrib", "contrib", name)
