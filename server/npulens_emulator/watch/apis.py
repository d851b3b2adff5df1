"""Uses of PyTorch's own APIs that the NPU does not have."""

import sys
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name

from npulens_emulator.memory import is_npu
from npulens_emulator.watch.record import Record


class _Watch(TorchFunctionMode):
    """Sees each call of a function or method of PyTorch."""

    def __init__(self, record: Record, known: dict[str, str]) -> None:
        super().__init__()
        self._record = record
        self._known = known
        self._names: dict[Any, str | None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self._names:
            name = resolve_name(func)
            self._names[func] = name if name in self._known else None
        name = self._names[func]
        if name is not None and any(is_npu(each) for each in args):
            place = self._record.place_of(sys._getframe(1))
            if place is not None:
                path, line = place
                self._record.apis[(path, line, name)] += 1
        return func(*args, **(kwargs or {}))


def watch_apis(record: Record) -> None:
    """Note calls on the NPU of what the settings name, in the main thread."""
    known: dict[str, str] = record.settings["apis"]
    if known:
        mode: Any = _Watch(record, known)
        mode.__enter__()
