"""Random states of the NPUs."""

import hashlib
import struct
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.generators import default_generators
from npulens_emulator.memory import current_device
from npulens_emulator.npu.devices import index_of

_STATE_BYTES = 16
_MASK = (1 << 64) - 1
_KEPT_STATES = 4096
_full_states: OrderedDict[bytes, Tensor] = OrderedDict()
"""What the generator of the CPU had, by the state that was given for it."""


def manual_seed(seed: int) -> None:
    """Seed the current NPU."""
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current NPU at random."""
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seed all at random."""
    manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    """What the current NPU was seeded with."""
    return int(default_generators[current_device()].initial_seed())


def get_rng_state(device: Any = "npu") -> Tensor:
    """The state of an NPU, a tensor of bytes on the host."""
    return _state_of(default_generators[index_of(device)])


def set_rng_state(new_state: Tensor, device: Any = "npu") -> None:
    """Set it."""
    _set(default_generators[index_of(device)], new_state)


def get_rng_state_all() -> list[Tensor]:
    """The states of all."""
    return [_state_of(generator) for generator in default_generators]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Set them."""
    for generator, state in zip(default_generators, new_states, strict=False):
        _set(generator, state)


def _state_of(generator: Any) -> Tensor:
    """The seed and an offset, eight bytes each, as libraries take them apart that know NPUs.

    The generator of the CPU has no offset; its own state is kept for when this one comes back.
    """
    full: Tensor = generator.get_state()
    digest = hashlib.blake2b(full.numpy().tobytes(), digest_size=6).digest()
    offset = int.from_bytes(digest, "little") & ~3  # a multiple of four, as on the device
    seed = int(generator.initial_seed()) & _MASK
    state = struct.pack("<QQ", seed, offset)
    _full_states[state] = full
    _full_states.move_to_end(state)
    if len(_full_states) > _KEPT_STATES:
        _full_states.popitem(last=False)
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)


def _set(generator: Any, new_state: Tensor) -> None:
    """Go back to a state, or to one that starts from what has been written into it."""
    state = new_state.cpu().numpy().tobytes()
    if len(state) != _STATE_BYTES:
        raise RuntimeError("RNG state is wrong size")
    full = _full_states.get(state)
    if full is None:
        digest = hashlib.blake2b(state, digest_size=8).digest()
        generator.manual_seed(int.from_bytes(digest, "little") >> 1)
    else:
        generator.set_state(full)


def get_default_generator(device: Any = None) -> Any:
    """The generator of an NPU."""
    return default_generators[index_of(device)]
