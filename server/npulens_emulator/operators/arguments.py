"""Checks of arguments that operators share, and operators without a backward pass."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, ParamSpec, TypeVar

import torch
from torch import Tensor

COMMON = (torch.float16, torch.bfloat16, torch.float32)
"""The dtypes that most operators take. None takes float64."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DtypeError(RuntimeError):
    """The operator does not take tensors of this dtype, or not beside each other."""


class BackwardError(RuntimeError):
    """The operator has no backward pass, or none for these arguments."""


def require(condition: bool, operator: str, message: str) -> None:
    """Raise RuntimeError unless `condition` holds."""
    if not condition:
        raise RuntimeError(f"{operator}: {message}")


def not_described(operator: str, what: str) -> NoReturn:
    """Raise NotImplementedError: the reference does not know what the operator does there."""
    raise NotImplementedError(f"{operator}: {what} is not described well enough to be imitated")


def require_dtype(operator: str, tensor: Tensor, allowed: tuple[torch.dtype, ...] = COMMON) -> None:
    """Raise DtypeError unless the dtype of `tensor` is among `allowed`."""
    if tensor.dtype not in allowed:
        raise DtypeError(f"{operator}: does not take {tensor.dtype}")


def require_same_dtype(operator: str, *tensors: Tensor) -> None:
    """Raise DtypeError unless all tensors have one dtype."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        dtypes = ", ".join(str(tensor.dtype) for tensor in tensors)
        raise DtypeError(f"{operator}: takes tensors of one dtype, not {dtypes}")


def require_even(operator: str, tensor: Tensor, dim: int) -> None:
    """Raise RuntimeError unless the size of `tensor` along `dim` is even."""
    size = tensor.shape[dim]
    require(size % 2 == 0, operator, f"the size along dim {dim} must be even, not {size}")


class _Refusal(torch.autograd.Function):
    """Hands tensors through and refuses the way back."""

    @staticmethod
    def forward(ctx: Any, operator: str, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.operator = operator
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> NoReturn:
        raise BackwardError(f"{ctx.operator}: backward is not implemented on the NPU")


def inference_only(operator: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make an operator that raises BackwardError in the backward pass.

    It returns a tensor, or a tuple or list of tensors.
    """

    @functools.wraps(operator)
    def without_backward(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with torch.no_grad():
            result: Any = operator(*args, **kwargs)
        outputs = [result] if isinstance(result, Tensor) else list(result)
        inputs = list(_tensors((*args, *kwargs.values())))
        refuse: Any = _Refusal.apply
        refusing = refuse(operator.__name__, len(outputs), *outputs, *inputs)
        made: Result = refusing[0] if isinstance(result, Tensor) else type(result)(refusing)
        return made

    return without_backward


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
