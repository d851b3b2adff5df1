"""What the fallback has to know of an operator, read once from its schema."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

Argument = tuple[int, str]
"""The position and the name of an argument."""

MAY_MIX = {
    *("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"),
    *("_unsafe_index_put", "copy_", "_copy_from", "_copy_from_and_resize", "set_"),
    *("_pack_padded_sequence", "_pack_padded_sequence_backward"),
    *("_ctc_loss", "_ctc_loss_backward"),
}
"""Operators that take tensors of the host with dimensions beside those of the NPU."""

MASKED_WRITES = frozenset(("index_put_", "_index_put_impl_", "index_put"))
MASKS = (torch.bool, torch.uint8)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of PyTorch.

    Attributes:
        name: Without namespace and overload.
        is_view: Its result shares memory with an argument.
        writes: The arguments it changes.
        outs: Those of them that are named `out=` or alike, which may be given empty and grow.
        aliases: For each result the argument that it is, if any.
        generator: The argument that draws random numbers.
        draws: It draws random numbers, though it may take no generator.
        may_mix: It takes tensors of the host.
        tensors: The positions of arguments that are one tensor.
        has_dynamic_shape: The shape of its result depends on data.
        waits: The host needs a value of the device for it.
    """

    name: str
    is_view: bool
    writes: tuple[Argument, ...]
    outs: tuple[Argument, ...]
    aliases: tuple[Argument | None, ...]
    generator: Argument | None
    draws: bool
    may_mix: bool
    tensors: tuple[int, ...]
    has_dynamic_shape: bool
    waits: bool


@cache
def operator_of(overload: Any) -> Operator:
    """What is known of an overload, such as `torch.ops.aten.add.Tensor`."""
    schema = overload._schema
    name = schema.name.split("::")[1]
    writes: list[Argument] = []
    outs: list[Argument] = []
    by_set: dict[str, Argument] = {}
    generator: Argument | None = None
    tensors = []
    for position, argument in enumerate(schema.arguments):
        place = (position, argument.name)
        if argument.alias_info is not None and argument.alias_info.is_write:
            writes.append(place)
            outs += [place] if argument.kwarg_only else []
            by_set |= dict.fromkeys(argument.alias_info.before_set, place)
        if "Generator" in str(argument.type):
            generator = place
        if str(argument.type) == "Tensor":
            tensors.append(position)
    infos = [result.alias_info for result in schema.returns]
    aliases = tuple(
        next((by_set[each] for each in info.before_set if each in by_set), None)
        if info is not None and info.is_write
        else None
        for info in infos
    )
    tags = set(overload.tags)
    return Operator(
        name=name,
        is_view=any(info is not None and not info.is_write for info in infos),
        writes=tuple(writes),
        outs=tuple(outs),
        aliases=aliases,
        generator=generator,
        draws=torch.Tag.nondeterministic_seeded in tags,
        may_mix=name in MAY_MIX,
        tensors=tuple(tensors),
        has_dynamic_shape=torch.Tag.dynamic_output_shape in tags,
        waits=torch.Tag.data_dependent_output in tags,
    )


def has_mask(indices: object) -> bool:
    """Whether one of some indices is a mask, which is turned into positions first."""
    return isinstance(indices, list | tuple) and any(
        isinstance(index, torch.Tensor) and index.dtype in MASKS for index in indices
    )
