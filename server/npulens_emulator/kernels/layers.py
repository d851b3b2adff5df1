"""Convolutions and the fused cells of recurrent layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.fallback import fallback
from npulens_emulator.memory import to_cpu, to_npu


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution."""
    options = (stride, padding, dilation, transposed, output_padding, groups)
    return fallback(torch.ops.aten.convolution.default, x, weight, bias, *options)


def convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    mask: Any,
) -> Any:
    """The gradients of a convolution."""
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    options = (stride, padding, dilation, transposed, output_padding, groups)
    backward = torch.ops.aten.convolution_backward.default
    return fallback(backward, gradient, x, weight, [channels], *options, mask)


def _cpu(*tensors: Tensor) -> list[Tensor]:
    return [to_cpu(tensor) for tensor in tensors]


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The new hidden state, the new cell, and what the backward pass needs."""
    from_input, from_hidden, old = _cpu(input_gates, hidden_gates, cell)
    sums = from_input + from_hidden
    if input_bias is not None and hidden_bias is not None:
        sums = sums + to_cpu(input_bias) + to_cpu(hidden_bias)
    i, f, g, o = sums.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new = f * old + i * g
    return to_npu(o * new.tanh()), to_npu(new), to_npu(torch.cat((i, f, g, o), 1))


def lstm_cell_backward(
    hidden_gradient: Tensor | None,
    cell_gradient: Tensor | None,
    old_cell: Tensor,
    new_cell: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of the gates, of the cell and of the biases."""
    if hidden_gradient is None and cell_gradient is None:
        return None, None, None
    old, new, gates = _cpu(old_cell, new_cell, workspace)
    i, f, g, o = gates.chunk(4, 1)
    squashed = new.tanh()
    of_hidden = torch.zeros_like(new) if hidden_gradient is None else to_cpu(hidden_gradient)
    of_cell = of_hidden * o * (1 - squashed * squashed)
    if cell_gradient is not None:
        of_cell = of_cell + to_cpu(cell_gradient)
    parts = (
        of_cell * g * i * (1 - i),
        of_cell * old * f * (1 - f),
        of_cell * i * (1 - g * g),
        of_hidden * squashed * o * (1 - o),
    )
    of_gates = torch.cat(parts, 1)
    of_bias = to_npu(of_gates.sum(0)) if has_bias else None
    return to_npu(of_gates), to_npu(of_cell * f), of_bias


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The new hidden state, and what the backward pass needs."""
    from_input, from_hidden, old = _cpu(input_gates, hidden_gates, hidden)
    if input_bias is not None and hidden_bias is not None:
        from_input = from_input + to_cpu(input_bias)
        from_hidden = from_hidden + to_cpu(hidden_bias)
    input_r, input_z, input_n = from_input.chunk(3, 1)
    hidden_r, hidden_z, hidden_n = from_hidden.chunk(3, 1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return to_npu(n + z * (old - n)), to_npu(torch.cat((r, z, n, old, hidden_n), 1))


def gru_cell_backward(
    hidden_gradient: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """The gradients of both gates, of the hidden state and of both biases."""
    gradient, saved = _cpu(hidden_gradient, workspace)
    r, z, n, old, hidden_n = saved.chunk(5, 1)
    of_z = gradient * (old - n) * z * (1 - z)
    of_n = gradient * (1 - z) * (1 - n * n)
    of_r = of_n * hidden_n * r * (1 - r)
    of_input = torch.cat((of_r, of_z, of_n), 1)
    of_hidden = torch.cat((of_r, of_z, of_n * r), 1)
    biases = [to_npu(each.sum(0)) if has_bias else None for each in (of_input, of_hidden)]
    return to_npu(of_input), to_npu(of_hidden), to_npu(gradient * z), biases[0], biases[1]


LAYERS: dict[str, Callable[..., Any]] = {
    "convolution_overrideable": convolution,
    "convolution_backward_overrideable": convolution_backward,
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
