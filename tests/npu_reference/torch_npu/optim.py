from npulens_emulator.optim import (
    NpuFusedAdadelta,
    NpuFusedAdam,
    NpuFusedAdamW,
    NpuFusedRMSprop,
    NpuFusedSGD,
)
