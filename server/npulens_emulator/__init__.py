"""An Ascend NPU for trying code out, emulated on the CPU with PyTorch.

`npulens verify` runs a migrated script with the folder `STAND_IN` on its path, where `import
torch_npu` finds a stand-in for the real package. Tensors of the device `npu` lie in host memory and
are computed by the kernels of the CPU: what code means is imitated, not its speed and not the
numerics of the hardware. docs/verify.md lists what is not imitated.

Nothing here imports npulens, and importing this package alone does not import PyTorch.
"""

from pathlib import Path

STAND_IN = Path(__file__).parent / "stand_in"
"""The folder with the package `torch_npu`; on the path of verified runs alone."""

RELEASES = ((2, 10), (2, 13))
"""The oldest and the newest release of PyTorch that the emulator is made for."""
