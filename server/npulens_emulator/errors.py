"""What the emulator raises of its own."""


class NotEmulatedError(NotImplementedError):
    """torch_npu has this, but the emulator does not imitate it; says nothing about the NPU."""


class EmulatorError(RuntimeError):
    """The emulator cannot work with this PyTorch."""
