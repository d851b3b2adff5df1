"""The fused optimizers that have a counterpart in PyTorch.

They compute what it computes. Their constructors take less: no `maximize`, `foreach`, `fused`,
`capturable` or `differentiable`, and the learning rate of SGD must be given.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

Parameters = Iterable[Any]


class NpuFusedOptimizerBase(torch.optim.Optimizer):
    """What the fused optimizers have in common."""

    is_npu_fused_optimizer = True
    device_type: str | None = None
    """Where parameters have to be, `npu` as soon as that device is emulated."""

    def _check_each_step(self) -> None:
        """Parameters may still be elsewhere when the optimizer is made."""
        self.register_step_pre_hook(NpuFusedOptimizerBase._check_devices)

    def _check_devices(self, args: Any, kwargs: Any) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None or self.device_type is None:
                    continue
                if parameter.device.type != self.device_type:
                    found = parameter.device.type
                    raise RuntimeError(f"Tensors to combine must be on NPU, got {found}.")
                if parameter.dtype not in (torch.float32, torch.float16):
                    raise TypeError(
                        "Fused optimizer's parameters must be either float32 or float16, "
                        f"but received {parameter.dtype}"
                    )

    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2) -> Tensor:
        """Clip the gradients of all parameters by their common norm, which is returned."""
        parameters = [each for group in self.param_groups for each in group["params"]]
        return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)


class NpuFusedSGD(NpuFusedOptimizerBase, torch.optim.SGD):
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
        self._check_each_step()


class NpuFusedAdam(NpuFusedOptimizerBase, torch.optim.Adam):
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
        self._check_each_step()


class NpuFusedAdamW(NpuFusedOptimizerBase, torch.optim.AdamW):
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
        self._check_each_step()


class NpuFusedAdadelta(NpuFusedOptimizerBase, torch.optim.Adadelta):
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
        self._check_each_step()


class NpuFusedRMSprop(NpuFusedOptimizerBase, torch.optim.RMSprop):
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
        self._check_each_step()
