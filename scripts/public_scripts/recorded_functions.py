"""The functions and classes of PyTorch that know devices, as a CUDA of recorded calls has them."""

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from recorded_cuda import CARD, KIND, Log, Placed, described, is_cuda

Change = tuple[Any, str, Any]
"""An owner, the name of an attribute, and what it becomes."""

_TYPES = ("Float", "Half", "BFloat16", "Double", "Int", "Long", "Short", "Char", "Byte", "Bool")
_ASKED = {
    "is_available": True, "current_device": 0, "is_bf16_supported": True, "is_initialized": True,
    "get_device_name": "recorded CUDA", "get_arch_list": [], "mem_get_info": (2**33, 2**34),
    "memory_stats": {}, "memory_summary": "", "_lazy_init": None,
    "is_current_stream_capturing": False,
    "get_device_properties": SimpleNamespace(
        name="recorded CUDA", major=8, minor=0, total_memory=2**34, multi_processor_count=100
    ),
}  # fmt: skip
"""Questions, which are no events, with their answers."""
_TOLD = {
    "device_count": 1, "synchronize": None, "empty_cache": None, "reset_peak_memory_stats": None,
    "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0,
    "max_memory_reserved": 0, "ipc_collect": None,
}  # fmt: skip
"""Functions that may be given a device, with their answers."""
_ALIASES = {"reset_max_memory_allocated": "reset_peak_memory_stats"}
_OF_ACCELERATORS = {
    "set_device": "set_device_index", "current_device": "current_device_index",
    "mem_get_info": "get_memory_info",
}  # fmt: skip
"""How `torch.accelerator` calls what `torch.cuda` has under another name."""


@contextlib.contextmanager
def replaced(log: Log, placed: Placed) -> Iterator[None]:
    """Have what knows devices note what it is asked for; afterwards all is as it was."""
    before: list[Change] = []
    try:
        for owner, name, value in _changes(log, placed):
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


def _changes(log: Log, placed: Placed) -> Iterator[Change]:
    yield from _functions(log)
    yield from _streams(log)
    yield from _types(log, placed)
    yield from _precision(log)
    yield from _files(log, placed)
    yield from _makers(log, placed)
    yield torch.nn.parallel.comm, "scatter", _scattered
    if torch.distributed.is_available():
        yield from _process_groups(log)


def _both(name: str, value: Any) -> Iterator[Change]:
    """A name of `torch.cuda`, and of `torch.accelerator` if that has it."""
    yield torch.cuda, name, value
    accelerator: Any = torch.accelerator
    other = _OF_ACCELERATORS.get(name, name)
    if hasattr(accelerator, other):
        yield accelerator, other, value


def _functions(log: Log) -> Iterator[Change]:
    """Questions, functions that act, and seeds."""
    for name, answer in _ASKED.items():
        yield from _both(name, _answering(answer))
    yield torch.cuda, "get_device_capability", _answering((8, 0))
    for name, answer in _TOLD.items():
        yield from _both(name, _noting(log, name, answer))
    for name, same in _ALIASES.items():
        yield torch.cuda, name, _noting(log, same, None)
    yield from _both("set_device", _noting(log, "set_device", None))
    yield torch.accelerator, "current_accelerator", lambda check_available=False: torch.device(KIND)
    yield torch, "get_device_module", lambda device=None: torch.cuda
    activity: Any = torch.profiler.ProfilerActivity
    yield torch.profiler, "supported_activities", _answering({activity.CPU, activity.CUDA})
    for name in ("range_push", "range_pop"):
        yield torch.cuda.nvtx, name, _marking(log, name)
    for name in ("manual_seed", "manual_seed_all"):
        yield torch.cuda, name, log.seed
    for name in ("get_rng_state", "get_rng_state_all"):
        yield torch.cuda, name, _noting(log, name, [torch.get_rng_state()])
    for name in ("set_rng_state", "set_rng_state_all"):
        yield torch.cuda, name, _noting(log, name, None)


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *given, **named: answer


def _marking(log: Log, event: str) -> Callable[..., Any]:
    return lambda *given: log.note(" ".join([event, *given]))


def _noting(log: Log, event: str, answer: Any) -> Callable[..., Any]:
    """A function that notes its call, with the card that it is given."""

    def function(*given: Any, **named: Any) -> Any:
        devices = [each for each in (*given, *named.values()) if each is not None]
        cards = {_card(each) for each in devices if _is_card(each)} or {_card(CARD)}
        log.note(" ".join([event, *cards]))
        return answer

    return function


def _is_card(value: object) -> bool:
    return isinstance(value, (str, torch.device)) or type(value) is int


def _card(device: Any) -> str:
    """A device with its number, which is that of the only card where there is none."""
    found = torch.device(KIND, device) if isinstance(device, int) else torch.device(device)
    return f"{found.type}:{found.index or 0}"


def _streams(log: Log) -> Iterator[Change]:
    """Streams, events, and what makes one current."""

    class Stream:
        def __init__(self, *given: Any, **named: Any) -> None:
            log.note(f"makes {type(self).__name__}")

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def is_capturing(self) -> bool:
            return False

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return _noting(log, f"{type(self).__name__}.{name}", 1.0)

    class Event(Stream):
        pass

    def entering(name: str) -> Callable[..., Any]:
        @contextlib.contextmanager
        def enter(*given: Any) -> Iterator[None]:
            cards = [_card(each) for each in given if _is_card(each)]
            log.note(" ".join([f"enters {name}", *cards]))
            yield
            log.note(f"leaves {name}")

        return enter

    current = object.__new__(Stream)
    yield torch.cuda, "Stream", Stream
    yield torch.cuda, "Event", Event
    yield torch.cuda, "stream", entering("a stream")
    yield torch.cuda, "device", entering("a card")
    if hasattr(torch.accelerator, "device_index"):
        yield torch.accelerator, "device_index", entering("a card")
    yield from _both("current_stream", _answering(current))
    yield torch.cuda, "default_stream", _answering(current)
    yield torch.Tensor, "record_stream", _noting(log, "records a stream of a tensor", None)
    yield torch.nn.parallel._functions, "_get_stream", _answering(current)
    yield from _both("set_stream", _noting(log, "set_stream", None))


def _types(log: Log, placed: Placed) -> Iterator[Change]:
    """`torch.cuda.FloatTensor`: called, given to `type`, and asked for by `isinstance`."""

    class OfCuda(type):
        cuda_name: str
        host: Any

        def __call__(cls, *given: Any, **named: Any) -> Any:
            made = cls.host(*given, **named)
            log.note(f"makes {described(made)}")
            return placed.put(made)

        def __instancecheck__(cls, value: object) -> bool:
            return value in placed and isinstance(value, cls.host)

    for each in _TYPES:
        name = f"{each}Tensor"
        parts = {"cuda_name": f"torch.cuda.{name}", "host": getattr(torch, name)}
        yield torch.cuda, name, OfCuda(name, (), {**parts, "dtype": parts["host"].dtype})
    set_type, set_device = torch.set_default_tensor_type, torch.set_default_device

    def set_default_device(device: Any) -> None:
        if device is not None:
            log.note(f"has tensors made on {_card(device)}")
        set_device(device)

    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else getattr(kind, "cuda_name", "")
        if not name.startswith("torch.cuda."):
            set_type(kind)
            return
        set_type(getattr(torch, name.rpartition(".")[2]))
        set_default_device(CARD)

    yield torch, "set_default_device", set_default_device
    yield torch, "set_default_tensor_type", set_default_tensor_type


def _precision(log: Log) -> Iterator[Change]:
    """Autocast and scalers of CUDA, on or off, and the type that is computed with."""
    autocast: Any = torch.amp.autocast_mode.autocast
    scaler: Any = torch.amp.GradScaler
    enter, make = autocast.__enter__, scaler.__init__

    def entered(self: Any) -> Any:
        if self.device == KIND:
            log.note(f"autocast {self.fast_dtype}" if self._enabled else "no autocast")
        return enter(self)

    def made(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        if self._device == KIND:
            log.note(f"scales by {self._init_scale}" if self._enabled else "scales nothing")

    yield autocast, "__enter__", entered
    yield scaler, "__init__", made


def _files(log: Log, placed: Placed) -> Iterator[Change]:
    """`torch.save`, and where `torch.load` puts what is loaded."""
    load, save = torch.load, torch.save
    saved: set[str] = set()
    """Files with tensors that are there."""

    def noted(content: Any, file: Any, *given: Any, **named: Any) -> None:
        save(content, file, *given, **named)
        if placed.has(content):
            saved.add(_file_of(file))

    def loaded(file: Any, map_location: Any = None, *given: Any, **named: Any) -> Any:
        place = map_location(_Storage(), "cpu") if callable(map_location) else map_location
        found = load(file, "cpu", *given, **named)
        if is_cuda(place):
            log.note(f"loads to {_card(place)}")
        is_there = _file_of(file) in saved if place is None else is_cuda(place)
        return placed.put(found) if is_there else found

    yield torch, "load", loaded
    yield torch, "save", noted


def _file_of(file: Any) -> str:
    """What a file is known by: its path, if it has one."""
    if isinstance(file, (str, os.PathLike)):
        return os.path.abspath(file)  # noqa: PTH100  # which may be bytes
    return os.path.abspath(file.name) if hasattr(file, "name") else str(id(file))  # noqa: PTH100


class _Storage:
    """What a function for `map_location` is given; its answer is a device."""

    def cuda(self, device: Any = None, **named: Any) -> Any:
        return CARD if device is None else device

    def to(self, device: Any, **named: Any) -> Any:
        return device


def _makers(log: Log, placed: Placed) -> Iterator[Change]:
    """Classes whose instances know a device: loaders, generators, parameters, variables."""
    loader: Any = torch.utils.data.DataLoader
    prepare = loader.__init__
    signature = inspect.signature(prepare)

    def prepared(*given: Any, **named: Any) -> None:
        bound = signature.bind(*given, **named)
        if bound.arguments.get("pin_memory"):
            log.note("pins batches")  # which needs a CUDA that is there
        for name in ("pin_memory", "pin_memory_device"):
            bound.arguments.pop(name, None)
        prepare(*bound.args, **bound.kwargs)

    class Generator(torch.Generator):
        place: torch.device

        def __new__(cls, device: Any = "cpu") -> Any:
            if is_cuda(device):
                log.note("makes a generator")
            made = super().__new__(cls)
            made.place = torch.device(_card(device)) if is_cuda(device) else torch.device("cpu")
            return made

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return self.place

    parameter: Any = torch.nn.Parameter
    make = parameter.__new__

    def made_of(cls: Any, data: Any = None, *given: Any, **named: Any) -> Any:
        made = make(cls, data, *given, **named)
        return placed.put(made) if data in placed else made

    parts: Any = torch._C._nn
    parse = parts._parse_to

    def parsed(*given: Any, **named: Any) -> Any:
        """What `Module.to` is given; the host knows no numbers of cards."""
        first = given[0] if given else None
        if isinstance(first, torch.Tensor):
            return parse(first.device, first.dtype, *given[1:], **named)
        if type(first) is int:
            return parse(torch.device(KIND, first), *given[1:], **named)
        if type(named.get("device")) is int:
            named["device"] = torch.device(KIND, named["device"])
        return parse(*given, **named)

    variable: Any = torch.autograd.Variable

    class Variable(variable):  # type: ignore[misc]
        def __new__(cls, data: Any = None, *given: Any, **named: Any) -> Any:
            made = variable(data, *given, **named)
            return placed.put(made) if data in placed else made

    yield loader, "__init__", prepared
    yield torch, "Generator", Generator
    yield parameter, "__new__", made_of
    yield parts, "_parse_to", parsed
    yield torch.autograd, "Variable", Variable


def _scattered(tensor: Any, devices: Any = None, *given: Any, **named: Any) -> Any:
    """A batch on the cards of a `DataParallel`, of which there is one."""
    return tuple(tensor.to(device) for device in devices)


def _process_groups(log: Log) -> Iterator[Change]:
    """Process groups of NCCL, which are those of the host."""
    groups: Any = torch.distributed
    join = groups.init_process_group
    joined_with = ["gloo"]

    def joined(backend: Any = None, *given: Any, **named: Any) -> None:
        joined_with[0] = str(backend or "nccl")
        log.note(f"joins with {joined_with[0]}")
        join("gloo", *given, **{**named, "device_id": None})

    yield groups, "init_process_group", joined
    yield groups, "get_backend", lambda group=None: joined_with[0]
    yield groups, "is_nccl_available", lambda: True
