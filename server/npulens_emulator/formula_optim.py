"""The fused optimizers whose formulas PyTorch does not have.

Sources: Ascend/pytorch, torch_npu/optim/npu_fused_rmsprop_tf.py and npu_fused_adamp.py.
"""

import math
from typing import Any

import torch
from torch import Tensor

from npulens_emulator.optim import NpuFusedOptimizerBase, Parameters

_State = dict[str, Any]


class _ByFormula(NpuFusedOptimizerBase):
    """Updates one parameter after the other."""

    def __init__(self, params: Parameters, **defaults: Any) -> None:
        torch.optim.Optimizer.__init__(self, params, defaults)
        self._check_each_step()

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step; the closure gives the loss anew."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, self.state[parameter], group)
        return loss

    def _update(self, parameter: Tensor, grad: Tensor, state: _State, group: Any) -> None:
        raise NotImplementedError


class NpuFusedRMSpropTF(_ByFormula):
    """RMSprop as TensorFlow has it: squares start from one, and epsilon is under the root."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.9,
        eps: float = 1e-10,
        weight_decay: float = 0,
        momentum: float = 0.0,
        centered: bool = False,
        decoupled_decay: bool = False,
        lr_in_momentum: bool = True,
    ) -> None:
        if min(lr, alpha, eps, weight_decay, momentum) < 0:
            raise ValueError("Invalid value: none may be below 0")
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            decoupled_decay=decoupled_decay,
            lr_in_momentum=lr_in_momentum,
        )

    def _update(self, parameter: Tensor, grad: Tensor, state: _State, group: Any) -> None:
        if not state:
            state.update(step=0, square_avg=torch.ones_like(parameter))
            state.update(momentum_buffer=torch.zeros_like(parameter))
            state.update(grad_avg=torch.zeros_like(parameter))
        state["step"] += 1
        if group["weight_decay"] and group["decoupled_decay"]:
            parameter.mul_(1 - group["weight_decay"])
        elif group["weight_decay"]:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"]
        square.add_(grad.pow(2) - square, alpha=1 - group["alpha"])
        if group["centered"]:
            mean = state["grad_avg"]
            mean.add_(grad - mean, alpha=1 - group["alpha"])
            square = square - mean.pow(2)
        root = square.add(group["eps"]).sqrt_()
        if not group["momentum"]:
            parameter.addcdiv_(grad, root, value=-group["lr"])
            return
        inner, outer = (group["lr"], 1.0) if group["lr_in_momentum"] else (1.0, group["lr"])
        buffer = state["momentum_buffer"]
        buffer.mul_(group["momentum"]).addcdiv_(grad, root, value=inner)
        parameter.sub_(buffer, alpha=outer)


class NpuFusedAdamP(_ByFormula):
    """Adam whose steps are projected, where they would only make weights longer."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        delta: float = 0.1,
        wd_ratio: float = 0.1,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            delta=delta,
            wd_ratio=wd_ratio,
            nesterov=nesterov,
        )

    def _update(self, parameter: Tensor, grad: Tensor, state: _State, group: Any) -> None:
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(parameter))
            state.update(exp_avg_sq=torch.zeros_like(parameter))
        state["step"] += 1
        (first, second), lr = group["betas"], group["lr"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(first).add_(grad, alpha=1 - first)
        square.mul_(second).addcmul_(grad, grad, value=1 - second)
        root = (square.sqrt() / math.sqrt(1 - second ** state["step"])).add_(group["eps"])
        moved = first * mean + (1 - first) * grad if group["nesterov"] else mean
        change, ratio = moved / root, 1.0
        if parameter.dim() > 1:
            change, ratio = _projected(parameter, grad, change, group)
        parameter.mul_(1 - lr * group["weight_decay"] * ratio)
        parameter.sub_(change, alpha=lr / (1 - first ** state["step"]))


def _projected(weight: Tensor, grad: Tensor, change: Tensor, group: Any) -> tuple[Tensor, float]:
    """The change without its part along the weight, and how much of the decay is left."""
    eps = group["eps"]
    for rows in (weight.size(0), 1):  # each channel, then the layer
        flat, flat_grad = weight.reshape(rows, -1), grad.reshape(rows, -1)
        lengths = (flat.norm(dim=1) + eps, flat_grad.norm(dim=1) + eps)
        cosine = (flat * flat_grad).sum(dim=1).abs() / lengths[0] / lengths[1]
        if cosine.max() < group["delta"] / math.sqrt(flat.size(1)):
            unit = flat / lengths[0].unsqueeze(1)
            flat_change = change.reshape(rows, -1)
            along = (unit * flat_change).sum(dim=1, keepdim=True)
            return (flat_change - unit * along).view_as(change), group["wd_ratio"]
    return change, 1.0
