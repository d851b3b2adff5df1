"""What a real device adds to PyTorch in C++, done in Python."""

from npulens_emulator.patches import compiling, generator, pinning, placing, storages, types


def apply() -> None:
    """Apply all."""
    storages.patch()
    pinning.patch()
    generator.patch()
    types.patch()
    placing.patch()
    compiling.patch()
