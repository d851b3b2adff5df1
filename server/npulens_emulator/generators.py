"""Random numbers of the NPUs.

With `NPULENS_SHARED_RANDOM=1` they come from the generator of the CPU, so that a run on the
emulated NPU draws what a run on the CPU draws. Otherwise each NPU has its own.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from npulens_emulator.memory import DEVICE_COUNT

SHARED = os.environ.get("NPULENS_SHARED_RANDOM") == "1"
_SEED = 2147483647
_C: Any = torch._C


def _made(seed: int) -> Any:
    generator = _C.Generator("cpu")
    generator.manual_seed(seed)
    return generator


default_generators: tuple[Any, ...] = tuple(
    torch.default_generator if SHARED else _made(_SEED + index) for index in range(DEVICE_COUNT)
)
"""One for each NPU."""

_known = {generator._cdata for generator in default_generators}


def belong_to_npu(generator: Any) -> None:
    """Let operators on the NPU take a generator; it is known by its address in C++."""
    _known.add(generator._cdata)


def generator_for(given: Any, index: int) -> Any:
    """The generator that an operator on an NPU draws from.

    Raises:
        RuntimeError: The given one is of the CPU.
    """
    if given is None:
        return default_generators[index]
    if not SHARED and given._cdata not in _known:
        raise RuntimeError("Expected a 'npu' device type for generator but found 'cpu'")
    return given


@contextmanager
def drawing_from(index: int) -> Iterator[None]:
    """Let kernels that take no generator draw from that of an NPU."""
    if SHARED:
        yield
        return
    generator = default_generators[index]
    saved = torch.default_generator.get_state()
    torch.default_generator.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(saved)
