"""Calls of CUDA interfaces in the user's code."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from npulens_emulator.watch.record import Record

Function = Callable[..., Any]
_PYTORCH = str(Path(torch.__file__).parent) + os.sep


def watch_cuda(record: Record) -> None:
    """Note each use of `torch.cuda`, `.cuda()` and CUDA's mixed precision in the user's code."""
    for name in dir(torch.cuda):
        value = getattr(torch.cuda, name, None)
        if name.startswith("_") or not callable(value):
            continue
        module = getattr(value, "__module__", None) or ""
        if isinstance(value, type):
            _watch_class(record, value, f"torch.cuda.{name}")
        elif module.partition(".")[0] == "torch":
            setattr(torch.cuda, name, _noting(record, value, f"torch.cuda.{name}"))
    for owner, label in ((torch.Tensor, "Tensor.cuda"), (torch.nn.Module, "Module.cuda")):
        methods: Any = owner
        methods.cuda = _noting(record, methods.cuda, label)
    # Without CUDA these only warn and switch themselves off.
    amp: Any = torch.amp
    for owner, label in (
        (amp.autocast_mode.autocast, "torch.autocast('cuda')"),
        (amp.GradScaler, "torch.amp.GradScaler('cuda')"),
    ):
        _watch_device(record, owner, label)


def _direct(record: Record) -> tuple[str, int] | None:
    """The line that calls the watched function, if the user's code does so itself."""
    frame = sys._getframe(2)
    path = record.relative(frame.f_code.co_filename)
    return None if path is None else (path, frame.f_lineno)


def _behind_pytorch(record: Record) -> tuple[str, int] | None:
    """The line that has called PyTorch, if it is one of the user's code and not of a library."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PYTORCH):
        frame = frame.f_back
    if frame is None:
        return None
    path = record.relative(frame.f_code.co_filename)
    return None if path is None else (path, frame.f_lineno)


def _noting(record: Record, function: Function, label: str) -> Function:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        place = _direct(record)
        if place is not None:
            path, line = place
            record.cuda_calls[(path, line, label)] += 1
        return function(*args, **kwargs)

    return wrapper


def _watch_class(record: Record, owner: Any, label: str) -> None:
    """Instances of classes such as `torch.cuda.Event`."""
    if not (getattr(owner, "__module__", None) or "").startswith("torch.cuda"):
        return
    try:
        owner.__init__ = _noting(record, owner.__init__, label)
    except TypeError:  # a class of C++
        return


def _watch_device(record: Record, owner: Any, label: str) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        device = args[0] if args else kwargs.get("device_type", kwargs.get("device", "cuda"))
        if isinstance(device, str) and device.startswith("cuda"):
            place = _behind_pytorch(record)
            if place is not None:
                path, line = place
                record.cuda_calls[(path, line, label)] += 1
        original(self, *args, **kwargs)

    owner.__init__ = made
