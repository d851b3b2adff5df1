from typing import Any

from npulens_emulator.formula_optim import NpuFusedAdamP, NpuFusedRMSpropTF
from npulens_emulator.names import missing
from npulens_emulator.optim import (
    NpuFusedAdadelta,
    NpuFusedAdam,
    NpuFusedAdamW,
    NpuFusedOptimizerBase,
    NpuFusedRMSprop,
    NpuFusedSGD,
)


def __getattr__(name: str) -> Any:
    return missing("torch_npu.optim", "optim", name)
