from typing import Any

from npulens_emulator.contrib.function import matmul_transpose
from npulens_emulator.names import missing


def __getattr__(name: str) -> Any:
    return missing("torch_npu.contrib.function", "contrib.function", name)
