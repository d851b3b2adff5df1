"""Normalisations."""

import torch
from torch import Tensor
from torch.nn import functional

from npulens_emulator.operators.arguments import (
    DtypeError,
    inference_only,
    require,
    require_dtype,
    require_same_dtype,
)


def npu_rms_norm(self: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide by the root of the mean square over the dimensions of `gamma`, times `gamma`.

    Returns:
        The result in the dtype of `self`, and the reciprocal root in float32.
    """
    operator = "npu_rms_norm"
    require_dtype(operator, self)
    half_with_full = self.dtype != torch.float32 and gamma.dtype == torch.float32
    if gamma.dtype != self.dtype and not half_with_full:
        raise DtypeError(f"{operator}: does not take {self.dtype} with {gamma.dtype}")
    require(
        gamma.dim() > 0 and gamma.shape == self.shape[-gamma.dim() :],
        operator,
        f"gamma {tuple(gamma.shape)} is not the trailing shape of {tuple(self.shape)}",
    )
    dimensions = tuple(range(-gamma.dim(), 0))
    full = self.float()
    reciprocal = torch.rsqrt(full.square().mean(dimensions, keepdim=True) + epsilon)
    return (full * reciprocal * gamma.float()).to(self.dtype), reciprocal


@inference_only
def npu_add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """`npu_rms_norm` of `x1 + x2`; without backward.

    Returns:
        The normalised sum, the reciprocal root in float32, and the sum.
    """
    require_same_dtype("npu_add_rms_norm", x1, x2, gamma)
    require(x1.shape == x2.shape, "npu_add_rms_norm", "x1 and x2 differ in shape")
    total = x1 + x2
    return *npu_rms_norm(total, gamma, epsilon), total


def npu_group_norm_swish(
    input: Tensor,  # noqa: A002 - the name in the schema
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, then `z * sigmoid(swish_scale * z)`.

    Returns:
        The result, and mean and reciprocal deviation of each group, of shape (N, groups).
    """
    operator = "npu_group_norm_swish"
    require_dtype(operator, input)
    require_same_dtype(operator, input, weight, bias)
    require(2 <= input.dim() <= 8, operator, "input must have 2 to 8 dimensions")
    require(weight.dim() == bias.dim() == 1, operator, "weight and bias must have one dimension")
    if input.requires_grad:
        require(input.shape[1] // num_groups <= 4000, operator, "more than 4000 channels a group")
    small = 1e-5 if eps is None else eps
    normal = functional.group_norm(input.float(), num_groups, weight.float(), bias.float(), small)
    out = normal * torch.sigmoid((1.0 if swish_scale is None else swish_scale) * normal)
    return out.to(input.dtype), *_statistics(input, num_groups, small)


@inference_only
def npu_group_norm_silu(
    input: Tensor,  # noqa: A002 - the name in the schema
    weight: Tensor | None,
    bias: Tensor | None,
    group: int,
    eps: float = 0.00001,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, then SiLU; without backward.

    Returns:
        The result, and mean and reciprocal deviation of each group, of shape (N, groups).
    """
    require_dtype("npu_group_norm_silu", input)
    gain = None if weight is None else weight.float()
    offset = None if bias is None else bias.float()
    out = functional.silu(functional.group_norm(input.float(), group, gain, offset, eps))
    return out.to(input.dtype), *_statistics(input, group, eps)


def _statistics(input: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor]:  # noqa: A002
    rows = input.float().reshape(input.shape[0], groups, -1)
    deviation = torch.rsqrt(rows.var(-1, unbiased=False) + eps)
    return rows.mean(-1).to(input.dtype), deviation.to(input.dtype)
