from typing import Any

from npulens_emulator.names import missing
from npulens_emulator.npu.amp import GradScaler, autocast, custom_bwd, custom_fwd
from torch_npu.npu.amp import autocast_mode, common, grad_scaler


def __getattr__(name: str) -> Any:
    return missing("torch_npu.npu.amp", "npu.amp", name)
