"""Optimizer steps, losses and parameters."""

import functools
import os
import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from npulens_emulator.memory import is_npu, to_cpu
from npulens_emulator.watch.record import Record

_MAX_LOSSES = 10_000
_UNSCALED = "_npulens_unscaled"
"""The attribute of a scaled loss with the loss itself."""


def watch_training(record: Record) -> None:
    """Note what is trained, and end the process when it made as many steps as wanted."""
    limit: int | None = record.settings["steps"]

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        record.steps += 1
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        for parameter in parameters if record.steps == 1 else ():
            kind = parameter.device.type
            record.trained[kind] = record.trained.get(kind, 0) + 1
        if record.steps == 1:
            record.first_step = record.place_of(sys._getframe(1))
        if record.settings["parameters"]:
            record.parameters.append([_size_of(parameter) for parameter in parameters])
        if limit is not None and record.steps >= limit:
            path, line = record.place_of(sys._getframe(1)) or (None, None)
            record.ended("steps", path=path, line=line)
            record.write()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    register_optimizer_step_post_hook(after_step)
    _watch_losses(record)


def _watch_losses(record: Record) -> None:
    tensor: Any = torch.Tensor
    backward = tensor.backward
    is_inside = False

    @functools.wraps(backward)
    def noting(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        nonlocal is_inside
        if is_inside:  # PyTorch calls the method again where functions are overridden
            return backward(self, *args, **kwargs)
        is_inside = True
        try:
            if self.numel() == 1 and len(record.losses) < _MAX_LOSSES:
                loss = getattr(self, _UNSCALED, self)
                record.losses.append(float(_on_host(loss)))
            return backward(self, *args, **kwargs)
        finally:
            is_inside = False

    tensor.backward = noting
    _remember_unscaled()


def _remember_unscaled() -> None:
    """Losses are compared as they are, not as a scaler makes them for half precision."""
    scaler: Any = torch.amp.GradScaler
    scale = scaler.scale

    @functools.wraps(scale)
    def remembering(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if isinstance(result, torch.Tensor) and isinstance(outputs, torch.Tensor):
            setattr(result, _UNSCALED, outputs.detach())
        return result

    scaler.scale = remembering


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    plain = getattr(plain, "_local_tensor", plain)  # what this process has of a sharded one
    return to_cpu(plain) if is_npu(plain) else plain


def _size_of(parameter: torch.Tensor) -> float:
    """The norm of a parameter, which tells two runs apart."""
    with torch.no_grad():
        return float(_on_host(parameter).double().norm())
