"""`torch.npu`: the names of the real module and no others."""

from typing import Any

from npulens_emulator.names import missing, names_of
from npulens_emulator.npu import offered

globals().update(offered())

from torch_npu.npu import amp, memory, random, streams, utils  # noqa: E402


def __getattr__(name: str) -> Any:
    return missing("torch_npu.npu", "npu", name)


def __dir__() -> list[str]:
    return sorted(names_of("npu"))
