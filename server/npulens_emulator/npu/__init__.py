"""What `torch.npu` offers, in modules by subject."""

from types import ModuleType
from typing import Any

from npulens_emulator.generators import default_generators
from npulens_emulator.memory import current_device
from npulens_emulator.names import names_of
from npulens_emulator.npu import devices, marks, memory, options, random, streams
from npulens_emulator.patches.types import TENSOR_TYPES

_MODULES: tuple[ModuleType, ...] = (devices, streams, random, memory, options, marks)


def offered() -> dict[str, Any]:
    """Everything that is imitated, as far as the release of PyTorch that runs has it."""
    found: dict[str, Any] = dict.fromkeys(options.WITHOUT_EFFECT, options.nothing)
    for module in _MODULES:
        found |= vars(module)
    found |= TENSOR_TYPES
    found |= {"current_device": current_device, "default_generators": default_generators}
    real = names_of("npu")
    return {name: value for name, value in found.items() if name in real}
