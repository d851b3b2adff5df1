"""Streams and events: everything is done in the order of the calls."""

import time
from typing import Any

import torch

from npulens_emulator import events
from npulens_emulator.memory import current_device
from npulens_emulator.npu import devices

_PRIVATE_USE = 20
"""The number of the device type in C++."""


class Stream:
    """A stream."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = torch.device("npu", devices.device(device).idx)
        self.priority = priority
        self.npu_stream = self.stream_id = id(self)
        self.device_index = self.device.index
        self.device_type = _PRIVATE_USE

    def wait_event(self, event: "Event") -> None:
        """Later work waits for the event."""

    def wait_stream(self, stream: "Stream") -> None:
        """Later work waits for the stream."""

    def record_event(self, event: "Event | None" = None) -> "Event":
        """An event at the end of what was submitted."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all is done."""
        return True

    def synchronize(self) -> None:
        """Let the host wait."""
        events.tell("wait", "synchronize")

    def set_data_preprocess_stream(self, is_data_preprocess_stream: bool = False) -> None:
        """A hint to the NPU."""

    def __enter__(self) -> Any:
        self._context = StreamContext(self)
        return self._context.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._context.__exit__(*raised)


class Event:
    """An event; its time is that of the host."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        self.enable_timing = enable_timing
        self.device = torch.device("npu", current_device())
        self.npu_event = id(self)
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait."""

    def query(self) -> bool:
        """Whether it has happened."""
        return True

    def synchronize(self) -> None:
        """Let the host wait."""
        events.tell("wait", "synchronize")

    def elapsed_time(self, end_event: "Event") -> float:
        """The time between two events, in milliseconds."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3


class SyncLaunchStream(Stream):
    """A stream that launches at once."""


class ExternalStream(Stream):
    """A stream made elsewhere."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device)


class ExternalEvent(Event):
    """An event made elsewhere."""


_default: Stream | None = None
_active: Stream | None = None


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to at first."""
    global _default
    if _default is None:
        _default = Stream()
    return _default


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to."""
    return _active or default_stream()


def set_stream(stream: Stream | None) -> None:
    """Let work go to a stream."""
    global _active
    if stream is not None:
        _active = stream


class StreamContext:
    """Lets work go to a stream for a while."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __enter__(self) -> Stream:
        self._before = current_stream()
        set_stream(self.stream)
        return self.stream

    def __exit__(self, *raised: object) -> None:
        set_stream(self._before)


def stream(stream: Stream) -> StreamContext:
    """The same as a function."""
    return StreamContext(stream)
