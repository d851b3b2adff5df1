"""The fused optimizers that have a counterpart in PyTorch.

They compute what it computes. Their constructors take less: no `maximize`, `foreach`, `fused`,
`capturable` or `differentiable`, and the learning rate of SGD must be given.
"""

from collections.abc import Iterable
from typing import Any

import torch

Parameters = Iterable[Any]


class NpuFusedSGD(torch.optim.SGD):
    """`torch.optim.SGD`."""

    def __init__(
        self,
        params: Parameters,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)


class NpuFusedAdam(torch.optim.Adam):
    """`torch.optim.Adam`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedAdamW(torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedAdadelta(torch.optim.Adadelta):
    """`torch.optim.Adadelta`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, lr, rho, eps, weight_decay)


class NpuFusedRMSprop(torch.optim.RMSprop):
    """`torch.optim.RMSprop`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered)
