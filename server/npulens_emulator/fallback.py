"""Runs any operator of PyTorch on tensors of the NPU with the kernel of the CPU.

Operators that only write metadata (views) run their CPU kernel on the tensors of the NPU
themselves, so that views share one storage. For all others the arguments become tensors of the CPU
over the same memory, and the results tensors of the NPU.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from npulens_emulator import events
from npulens_emulator.errors import NotEmulatedError
from npulens_emulator.generators import drawing_from, generator_for
from npulens_emulator.memory import is_npu, rebind, to_cpu, to_npu
from npulens_emulator.schemas import MASKED_WRITES, Argument, Operator, has_mask, operator_of

_CPU_KEY: Any = torch._C.DispatchKey.CPU
_HALVES = (torch.float16, torch.bfloat16)
_SCALARS = (int, float, bool, str, type(None))

operators: Counter[str] = Counter()
"""How often each operator ran on the NPU."""


def fallback(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator.

    Raises:
        RuntimeError: Tensors of the host stand beside those of the NPU, and what the kernel raises.
        NotEmulatedError: The CPU has no kernel for it.
    """
    operator = operator_of(overload)
    operators[operator.name] += 1
    if operator.is_view:
        return overload._op_dk(_CPU_KEY, *args, **kwargs)
    _tell(operator, args)
    call = _Call(overload, operator, args, kwargs)
    return call.results(call.run())


def _tell(operator: Operator, args: tuple[Any, ...]) -> None:
    if operator.name == "index" or operator.name in MASKED_WRITES:
        if len(args) > 1 and has_mask(args[1]):
            events.tell("shape", operator.name)
    elif operator.has_dynamic_shape:
        events.tell("shape", operator.name)
    if operator.waits:
        events.tell("wait", operator.name)


class _Call:
    """One call of an operator, with its arguments on the CPU."""

    def __init__(
        self, overload: Any, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.overload = overload
        self.operator = operator
        self.given = args, kwargs
        self.found_index: int | None = None
        self.has_host_tensor = False
        self.args = [self._lowered(each) for each in args]
        self.kwargs = {name: self._lowered(each) for name, each in kwargs.items()}
        for position in operator.tensors:  # C++ hands wrapped numbers over as numbers of Python
            if position < len(self.args) and isinstance(self.args[position], int | float | complex):
                self.args[position] = torch.tensor(self.args[position])
        self.index = self.found_index or 0
        if self.has_host_tensor and not operator.may_mix:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"npu:{self.index} and cpu! (in aten::{operator.name})"
            )
        if self.kwargs.get("pin_memory"):
            self.kwargs["pin_memory"] = False

    def _lowered(self, value: Any) -> Any:
        """A value with the CPU in place of the NPU."""
        if isinstance(value, _SCALARS):
            return value
        if isinstance(value, Tensor):
            if value.device.type == "npu":
                self._found(value.device)
                return to_cpu(value)
            self.has_host_tensor |= value.dim() > 0 and value.device.type == "cpu"
            return value
        if isinstance(value, list | tuple):
            return [self._lowered(each) for each in value]
        if isinstance(value, torch.device) and value.type == "npu":
            self._found(value)
            return torch.device("cpu")
        return value

    def _found(self, device: torch.device) -> None:
        if self.found_index is None:
            self.found_index = device.index or 0

    def run(self) -> Any:
        """What the kernel of the CPU gives."""
        for place in self.operator.outs:
            value = self._get(self.args, self.kwargs, place)
            # It may have to grow, which an alias cannot.
            if isinstance(value, Tensor) and value.numel() == 0:
                self._put(place, torch.empty(0, dtype=value.dtype))
        if self.operator.generator is not None:
            given = self._get(self.args, self.kwargs, self.operator.generator)
            self._put(self.operator.generator, generator_for(given, self.index))
            return self._called()
        if self.operator.draws:
            with drawing_from(self.index):
                return self._called()
        return self._called()

    @property
    def _is_in_place(self) -> bool:
        return self.operator.name.endswith("_")

    def _called(self) -> Any:
        try:
            return self.overload(*self.args, **self.kwargs)
        except (RuntimeError, NotImplementedError) as error:
            text = str(error)
            if "resize storage that is not resizable" in text and not self._is_in_place:
                for place in self.operator.writes:
                    value = self._get(self.args, self.kwargs, place)
                    if isinstance(value, Tensor):
                        self._put(place, torch.empty(0, dtype=value.dtype))
                return self.overload(*self.args, **self.kwargs)
            if "not implemented for" in text and ("'Half'" in text or "'BFloat16'" in text):
                return self._called_in_float32()
            if "Could not run 'aten::" in text and "from the 'CPU' backend" in text:
                name = self.operator.name
                raise NotEmulatedError(f"aten::{name} has no kernel for the CPU") from None
            raise

    def _called_in_float32(self) -> Any:
        """The NPU has kernels for half precision that the CPU lacks: compute and round."""
        low: list[torch.dtype] = []
        pairs: list[tuple[Tensor, Tensor]] = []

        def widened(tensor: Tensor) -> Tensor:
            if tensor.dtype not in _HALVES:
                return tensor
            low.append(tensor.dtype)
            pairs.append((tensor, tensor.float()))
            return pairs[-1][1]

        args = [mapped(each, widened) for each in self.args]
        kwargs = {name: mapped(each, widened) for name, each in self.kwargs.items()}
        result = self.overload(*args, **kwargs)
        if self.operator.writes:
            for narrow, wide in pairs:
                if narrow.shape == wide.shape:
                    narrow.copy_(wide)
        return mapped(result, lambda each: each.to(low[0]) if each.dtype == torch.float32 else each)

    def results(self, result: Any) -> Any:
        """What the caller gets: tensors of the NPU, and the very arguments that were changed."""
        if not self.operator.writes:
            raised = mapped(result, self._raised)
            return tuple(raised) if isinstance(result, tuple) else raised
        for place in self.operator.writes:
            old, new = self._get(*self.given, place), self._get(self.args, self.kwargs, place)
            pairs = zip(old, new, strict=True) if isinstance(old, list | tuple) else [(old, new)]
            for before, after in pairs:
                if is_npu(before) and _moved(before, after):
                    rebind(before, after, self.index)
        aliases = self.operator.aliases
        if not aliases:
            return None
        single = not isinstance(result, tuple | list) or len(aliases) == 1
        found = [
            self._raised(each) if place is None else self._get(*self.given, place)
            for each, place in zip([result] if single else result, aliases, strict=True)
        ]
        return found[0] if single else tuple(found)

    def _raised(self, value: Any) -> Any:
        if isinstance(value, Tensor) and value.device.type == "cpu":
            return to_npu(value, self.index)
        return value

    @staticmethod
    def _get(args: Any, kwargs: Any, place: Argument) -> Any:
        position, name = place
        return args[position] if position < len(args) else kwargs.get(name)

    def _put(self, place: Argument, value: Any) -> None:
        position, name = place
        if position < len(self.args):
            self.args[position] = value
        else:
            self.kwargs[name] = value


def _moved(before: Tensor, after: Tensor) -> bool:
    return after.shape != before.shape or after.data_ptr() != before.data_ptr()


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """A value, or list of values, with each tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return [mapped(each, change) for each in value]
    return value
