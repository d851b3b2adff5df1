from typing import Any

from npulens_emulator.contrib.module import NpuDropPath
from npulens_emulator.names import missing


def __getattr__(name: str) -> Any:
    return missing("torch_npu.contrib.module", "contrib.module", name)
