"""Modules of `torch_npu.contrib`."""

import torch
from torch import Tensor, nn


class NpuDropPath(nn.Module):
    """Stochastic depth: in training, drops whole samples and scales up those that stay.

    Until `enable_droppath_ensemble` was called with a model that holds it, it drops nothing.

    Raises:
        TypeError: `drop_prob` is None, its default.
    """

    def __init__(self, drop_prob: float | None = None) -> None:
        super().__init__()
        self.keep_prob = 1 - drop_prob  # type: ignore[operator]  # as on the NPU
        self.enabled = False

    @classmethod
    def enable_droppath_ensemble(cls, model: nn.Module) -> None:
        """Let the instances inside `model` drop from now on."""
        for module in model.modules():
            if isinstance(module, cls):
                module.enabled = True

    def forward(self, x: Tensor) -> Tensor:
        """Drop samples of `x` along its first dimension."""
        if not (self.training and self.enabled):
            return x
        shape = (x.shape[0],) + (1,) * (x.dim() - 1)
        stays = torch.full(shape, self.keep_prob, dtype=x.dtype, device=x.device).bernoulli()
        return x * stays / self.keep_prob
