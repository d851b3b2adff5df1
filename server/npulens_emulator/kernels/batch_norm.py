"""The parts of synchronised batch norm, which PyTorch has for accelerators alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.memory import to_cpu, to_npu


def _channels(x: Tensor) -> tuple[list[int], list[int]]:
    """The dimensions to reduce, and the shape that lies a vector of channels beside `x`."""
    return [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2)


def statistics(x: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Mean and reciprocal deviation of each channel."""
    full = to_cpu(x).float()
    variance, mean = torch.var_mean(full, _channels(full)[0], correction=0)
    return to_npu(mean), to_npu(torch.rsqrt(variance + epsilon))


def normalised(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    reciprocal: Tensor,
    epsilon: float,
) -> Tensor:
    """The normalised values."""
    values = to_cpu(x)
    shape = _channels(values)[1]
    out = (values.float() - to_cpu(mean).view(shape)) * to_cpu(reciprocal).view(shape)
    if weight is not None:
        out = out * to_cpu(weight).view(shape)
    if bias is not None:
        out = out + to_cpu(bias).view(shape)
    return to_npu(out.to(values.dtype))


def gathered(
    x: Tensor,
    means: Tensor,
    reciprocals: Tensor,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    momentum: float,
    epsilon: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Mean and reciprocal deviation over all processes."""
    mean, reciprocal = to_cpu(means).float(), to_cpu(reciprocals).float()
    count = to_cpu(counts).float().view(-1, 1)
    total = count.sum()
    whole = (mean * count).sum(0) / total
    squares = 1.0 / (reciprocal * reciprocal) - epsilon + mean * mean
    variance = (squares * count).sum(0) / total - whole * whole
    for running, value in (
        (running_mean, whole),
        (running_variance, variance * total / (total - 1)),
    ):
        if running is not None:
            kept = to_cpu(running)
            kept.mul_(1 - momentum).add_(value.to(kept.dtype), alpha=momentum)
    return to_npu(whole), to_npu(torch.rsqrt(variance + epsilon))


def backward_sums(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    reciprocal: Tensor,
    weight: Tensor | None,
    input_wanted: bool,
    weight_wanted: bool,
    bias_wanted: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """What the processes add up, and the gradients of weight and bias."""
    of_output, values = to_cpu(gradient).float(), to_cpu(x).float()
    dimensions, shape = _channels(values)
    centred = values - to_cpu(mean).view(shape)
    total, product = of_output.sum(dimensions), (of_output * centred).sum(dimensions)
    of_weight = of_bias = None
    if weight is not None and weight_wanted:
        of_weight = to_npu((product * to_cpu(reciprocal)).to(weight.dtype))
    if weight is not None and bias_wanted:
        of_bias = to_npu(total.clone().to(weight.dtype))
    return to_npu(total), to_npu(product), of_weight, of_bias


def backward_values(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    reciprocal: Tensor,
    weight: Tensor | None,
    total: Tensor,
    product: Tensor,
    counts: Tensor,
) -> Tensor:
    """The gradient of the input."""
    of_output, values = to_cpu(gradient).float(), to_cpu(x).float()
    shape = _channels(values)[1]
    count = to_cpu(counts).sum().float()
    scale = to_cpu(reciprocal).view(shape)
    centred = values - to_cpu(mean).view(shape)
    shared = (to_cpu(product) / count).view(shape)
    out = of_output - (to_cpu(total) / count).view(shape) - centred * scale * scale * shared
    out = out * scale
    if weight is not None:
        out = out * to_cpu(weight).view(shape)
    return to_npu(out.to(gradient.dtype))


BATCH_NORM: dict[str, Callable[..., Any]] = {
    "batch_norm_stats": statistics,
    "batch_norm_elemt": normalised,
    "batch_norm_gather_stats_with_counts": gathered,
    "batch_norm_backward_reduce": backward_sums,
    "batch_norm_backward_elemt": backward_values,
}
