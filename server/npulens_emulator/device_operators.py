"""The fused operators as operators of the NPU: tensors must lie there, and nothing is cast."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from npulens_emulator import events
from npulens_emulator.operators import OPERATORS


def on_npu(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The operator, which raises RuntimeError for a tensor of another device."""

    @functools.wraps(operator)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for tensor in _tensors((*args, *kwargs.values())):
            if tensor.device.type != "npu":
                raise RuntimeError(
                    f"{operator.__name__}: Expected all tensors to be on the same device. "
                    f"Expected NPU tensor, please check whether the input tensor device is "
                    f"correct; got {tensor.device}"
                )
        with events.quiet(), torch.autocast("npu", enabled=False):
            return operator(*args, **kwargs)

    return checked


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


DEVICE_OPERATORS: Mapping[str, Callable[..., Any]] = {
    name: on_npu(operator) for name, operator in OPERATORS.items()
}
