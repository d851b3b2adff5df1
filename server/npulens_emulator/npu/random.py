"""Random states of the NPUs."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from npulens_emulator.generators import default_generators
from npulens_emulator.memory import current_device
from npulens_emulator.npu.devices import index_of


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
    state: Tensor = default_generators[index_of(device)].get_state()
    return state


def set_rng_state(new_state: Tensor, device: Any = "npu") -> None:
    """Set it."""
    default_generators[index_of(device)].set_state(new_state.cpu())


def get_rng_state_all() -> list[Tensor]:
    """The states of all."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Set them."""
    for generator, state in zip(default_generators, new_states, strict=False):
        generator.set_state(state.cpu())


def get_default_generator(device: Any = None) -> Any:
    """The generator of an NPU."""
    return default_generators[index_of(device)]
