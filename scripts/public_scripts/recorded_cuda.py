"""A CUDA of recorded calls: tensors stay on the host and say that they are on CUDA.

What the device is asked for is noted, in order: what is moved to it and made on it, and which
functions of `torch.cuda` and `torch.accelerator` are called (`recorded_functions.py`). Code for
CUDA and what a migration makes of it are to ask for the same. Asking where a tensor is, or whether
there is a device, is no event.
"""

import atexit
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors
from torch.utils.weak import WeakTensorKeyDictionary

KIND = "cuda"
CARD = torch.device(KIND, 0)
"""Where every tensor is that is moved: there is one card."""
_PLAIN = frozenset({"tensor", "empty"})
"""Makers that a constructor such as `torch.cuda.FloatTensor` stands for as well."""

_MIXES = frozenset(
    {"_has_compatible_shallow_copy_type", "copy_", "__getitem__", "__setitem__", "set_", "__repr__"}
)
"""What may be given tensors of several devices: values, and places in a tensor."""


class Log:
    """What a device is asked for, in order.

    Seeds count when something is asked next: of seeds in a row the last one holds, and a seed of
    CUDA that `torch.manual_seed` has set already is none.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self._seed: int | None = None

    def note(self, event: str) -> None:
        """The device is asked for something."""
        if self._seed is not None:
            self.events.append(f"seeds {self._seed}")
        self._seed = None
        self.events.append(event)

    def seed(self, number: int) -> None:
        """Random numbers of the device start anew."""
        self._seed = int(number)


class Placed:
    """The tensors that say that they are on CUDA."""

    def __init__(self) -> None:
        self._tensors: Any = WeakTensorKeyDictionary()

    def __contains__(self, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value in self._tensors

    def put(self, value: Any) -> Any:
        """All tensors of a value are there from now on; it is given back."""
        for each in _tensors_of(value):
            self._tensors[each] = True
        return value

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor is on the host from now on."""
        self._tensors.pop(tensor, None)
        return tensor

    def has(self, value: Any) -> bool:
        """Whether any tensor of a value is there."""
        return any(each in self for each in _tensors_of(value))


class Tensors(TorchFunctionMode):
    """Notes what is done with tensors, and does it on the host.

    Args:
        log: Where it is noted.
        placed: Which tensors are on CUDA.
    """

    def __init__(self, log: Log, placed: Placed) -> None:
        super().__init__()
        self._log = log
        self._placed = placed

    def __torch_function__(
        self, function: Any, kinds: Any, given: Any = (), named: Any = None
    ) -> Any:
        named = dict(named or {})
        name = getattr(function, "__name__", "")
        if given and isinstance(given[0], torch.Tensor):
            if name in ("__get__", "__set__"):
                return self._property(function, name, given)
            special = getattr(self, f"_tensor_{name}", None)
            if special is not None:
                return special(function, *given, **named)
        if function is torch.device and len(given) == 1 and type(given[0]) is int:
            return torch.device(KIND, given[0])  # the host knows no numbers of cards
        if function in _device_constructors() and named.get("device") is None:
            named.update(_default_device())
        if "device" in named:
            return self._made(function, name, given, named)
        result = function(*given, **named)
        tensors = list(_tensors_of([given, list(named.values())]))
        if not any(each in self._placed for each in tensors):
            return result
        others = (each for each in tensors if each not in self._placed)
        if name not in _MIXES and any(each.dim() for each in others):
            self._log.note(f"mixes devices in {name}")  # an error of a CUDA that is there
        return self._placed.put(result)

    def _made(self, function: Any, name: str, given: Any, named: Any) -> Any:
        """`torch.ones(2, device=...)`."""
        if not is_cuda(named["device"]):
            return function(*given, **named)
        result = self._placed.put(function(*given, **{**named, "device": "cpu"}))
        if isinstance(result, torch.Tensor):
            self._log.note(f"makes {described(result)}" + f" by {name}" * (name not in _PLAIN))
        return result

    def _property(self, function: Any, name: str, given: Any) -> Any:
        owner, value = given[0], function(*given)
        attribute = function.__self__.__name__
        if name == "__set__":
            if attribute == "data":
                self._placed.put(owner) if given[1] in self._placed else self._placed.take(owner)
            return value
        if owner not in self._placed:
            return value
        answers = {"device": CARD, "is_cuda": True, "is_cpu": False}
        return answers[attribute] if attribute in answers else self._placed.put(value)

    def _moved(self, tensor: Any, target: Any, dtype: Any = None, waits: bool = True) -> Any:
        """A tensor on another device; itself if it is there. No device: where it is."""
        was_there, kind = tensor in self._placed, dtype or tensor.dtype
        is_there = was_there if target is None else is_cuda(target)
        if is_there == was_there:
            result = tensor.to(kind)
        else:
            result = tensor.to(kind, copy=True)
            where = "to the card" if is_there else "to the host"
            self._log.note(
                f"moves {described(result)} {where}" + ", waiting for nothing" * (not waits)
            )
        return self._placed.put(result) if is_there else result

    def _tensor_cuda(
        self, _: Any, tensor: Any, device: Any = None, non_blocking: bool = False, **named: Any
    ) -> Any:
        return self._moved(tensor, CARD if device is None else device, None, not non_blocking)

    def _tensor_cpu(self, _: Any, tensor: Any, **named: Any) -> Any:
        return self._moved(tensor, "cpu")

    def _tensor_to(self, _: Any, tensor: Any, *given: Any, **named: Any) -> Any:
        other = given[0] if given else named.get("other")
        if isinstance(other, torch.Tensor):
            return self._tensor_type_as(_, tensor, other)
        values = [*given, named.get("device"), named.get("dtype")]
        device = next((each for each in values if _is_device(each)), None)
        dtype = next((each for each in values if isinstance(each, torch.dtype)), None)
        flags = [each for each in given if isinstance(each, bool)]
        non_blocking = named.get("non_blocking", bool(flags and flags[0]))
        copies = named.get("copy", len(flags) > 1 and flags[1])
        moved = self._moved(tensor, device, dtype, not non_blocking)
        if moved is not tensor or not copies:
            return moved
        return self._placed.put(tensor.clone()) if tensor in self._placed else tensor.clone()

    def _tensor_type_as(self, _: Any, tensor: Any, other: Any) -> Any:
        return self._moved(tensor, CARD if other in self._placed else "cpu", other.dtype)

    def _tensor_type(
        self, function: Any, tensor: Any, kind: Any = None, *given: Any, **named: Any
    ) -> Any:
        kind = named.pop("dtype", kind)
        name = kind if isinstance(kind, str) else getattr(kind, "cuda_name", "")
        if kind is None:
            own = str(function(tensor))
            return own.replace("torch.", "torch.cuda.") if tensor in self._placed else own
        if isinstance(kind, torch.dtype):
            return self._moved(tensor, None, kind)
        if not name.startswith("torch.cuda."):
            return self._moved(tensor, "cpu", function(tensor, kind).dtype)
        return self._moved(tensor, CARD, getattr(torch, name.rpartition(".")[2]).dtype)

    def _tensor_get_device(self, _: Any, tensor: Any) -> int:
        return 0 if tensor in self._placed else -1

    def _tensor_pin_memory(self, _: Any, tensor: Any, *given: Any) -> Any:
        self._log.note("pins a tensor")
        return tensor

    def _tensor_numpy(self, function: Any, tensor: Any, **named: Any) -> Any:
        if tensor in self._placed and not named.get("force"):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return function(tensor, **named)

    def _tensor___array__(self, function: Any, tensor: Any, *given: Any, **named: Any) -> Any:
        if tensor in self._placed:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return function(tensor, *given, **named)


@contextlib.contextmanager
def recording() -> Iterator[list[str]]:
    """Have a CUDA of recorded calls; gives its events, which become more."""
    from recorded_functions import replaced

    log, placed = Log(), Placed()
    with replaced(log, placed), Tensors(log, placed):
        yield log.events


def begin(file: str) -> None:
    """Have a CUDA of recorded calls until the program ends, which writes the events."""
    context = recording()
    events = context.__enter__()

    def end() -> None:
        context.__exit__(None, None, None)
        Path(file).write_text(json.dumps(events), encoding="utf-8")

    atexit.register(end)


def is_cuda(device: object) -> bool:
    """Whether a device, or what names one, is CUDA."""
    if isinstance(device, torch.device):
        return device.type == KIND
    if isinstance(device, str):
        return device.partition(":")[0] == KIND
    return type(device) is int


def _tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a value: in sequences, tables and modules."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors_of(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors_of(each)
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()


def _is_device(value: object) -> bool:
    return isinstance(value, (str, torch.device)) or type(value) is int


def described(tensor: torch.Tensor) -> str:
    """A tensor as events tell it."""
    return f"{tensor.dtype} {tuple(tensor.shape)}"


def _default_device() -> dict[str, Any]:
    """What `torch.set_default_device` and `with torch.device(...)` say, if it is CUDA."""
    stack = reversed(_get_current_function_mode_stack())  # type: ignore[no-untyped-call]
    context: Any = next((each for each in stack if isinstance(each, DeviceContext)), None)
    return {"device": context.device} if context is not None and is_cuda(context.device) else {}
