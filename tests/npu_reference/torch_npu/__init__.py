"""The fused operators of the emulator on the CPU, without a device `npu`.

For tests of patterns and rewrites: they run in one process with tests that have no NPU.
"""

from npulens_emulator.operators import OPERATORS, BackwardError, DtypeError
from torch_npu import contrib, optim

__all__ = [*OPERATORS, "BackwardError", "DtypeError", "contrib", "optim"]
globals().update(OPERATORS)
