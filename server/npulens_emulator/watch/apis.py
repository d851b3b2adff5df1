"""Uses of PyTorch's own APIs that the NPU does not have, or not for such tensors."""

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from npulens_emulator.memory import is_npu
from npulens_emulator.watch.record import Record

_MOST_DIMENSIONS = 8
"""What operators of CANN take at most.

Source: Ascend/pytorch, docs/zh/api/native_api/pytorch_2-12-0/torch.md: up to 8 dimensions.
"""
_OPERATORS = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder"}
_MODULES = "torch.nn.modules."


class _Watch(TorchFunctionMode):
    """Sees each call of a function or method of PyTorch."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record
        self._known: Mapping[str, str] = record.settings["apis"]
        self._types: Mapping[str, list[str]] = record.settings["types"]
        self._names: dict[Any, str] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        on_npu = [each for each in _tensors(args) if is_npu(each)]
        if on_npu:
            if func not in self._names:
                self._names[func] = _name(func)
            self.note(self._names[func], on_npu, sys._getframe(1))
        return func(*args, **(kwargs or {}))

    def note(self, name: str, on_npu: list[Tensor], frame: FrameType) -> None:
        """Write down a call with tensors of the NPU, if there is something to say of it."""
        found = [] if name not in self._known else [""]
        for tensor in on_npu if not _is_of_scaler(frame) else ():
            kind = str(tensor.dtype).removeprefix("torch.")
            if kind in self._types.get(name, ()):
                found.append(kind)
            if tensor.dim() > _MOST_DIMENSIONS and not name.endswith(".__get__"):
                found.append(f"{tensor.dim()} dimensions")
        place = self._record.place_of(frame) if found else None
        if place is not None:
            path, line = place
            for each in dict.fromkeys(found):
                if each:
                    self._record.types[(path, line, name, each)] += 1
                else:
                    self._record.apis[(path, line, name)] += 1

    def on_module(self, module: torch.nn.Module, inputs: Any) -> None:
        """Note that a layer of PyTorch itself is called."""
        kind = type(module)
        name = f"torch.nn.{kind.__name__}"
        if name in self._known and kind.__module__.startswith(_MODULES):
            self.note(name, [each for each in _tensors(inputs) if is_npu(each)], sys._getframe(1))


def _is_of_scaler(frame: FrameType) -> bool:
    """Whether PyTorch's own mixed precision calls it, which computes with scales in float64."""
    return "/torch/amp/" in frame.f_code.co_filename.replace("\\", "/")


def _tensors(args: Any) -> Iterator[Any]:
    """The arguments that may be tensors, those in a list, too."""
    for each in args:
        if isinstance(each, list | tuple):
            yield from each
        else:
            yield each


def _name(func: Any) -> str:
    """What the tables call a function; `x + y` is `torch.Tensor.add`."""
    name: str = resolve_name(func) or ""
    owner, _, last = name.rpartition(".")
    if owner != "torch.Tensor" or not (last.startswith("__") and last.endswith("__")):
        return name
    plain = last.strip("_")
    plain = plain[1:] if plain[:1] in "ri" and plain[1:] in ("add", "sub", "mul", "pow") else plain
    plain = plain[1:] if plain[1:] in _OPERATORS else plain
    return name if last == "__get__" else f"{owner}.{_OPERATORS.get(plain, plain)}"


def watch_apis(record: Record) -> None:
    """Note calls on the NPU of what the settings name, in the main thread."""
    if record.settings["apis"]:
        watch = _Watch(record)
        mode: Any = watch
        mode.__enter__()
        hooks: Any = torch.nn.modules.module
        hooks.register_module_forward_pre_hook(watch.on_module)
