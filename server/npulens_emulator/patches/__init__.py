"""What a real device adds to PyTorch in C++, done in Python."""

from types import ModuleType

from npulens_emulator.patches import (
    accelerator,
    compiling,
    generator,
    pinning,
    placing,
    storages,
    streams,
    types,
)


def apply(npu: ModuleType) -> None:
    """Apply all to PyTorch, of which `torch.npu` becomes the module."""
    accelerator.patch(npu)
    streams.patch(npu)
    storages.patch()
    pinning.patch()
    generator.patch()
    types.patch()
    placing.patch()
    compiling.patch()
