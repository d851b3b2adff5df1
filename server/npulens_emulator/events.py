"""Tells who wants to know of shapes that depend on data and of waits for the device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Kind = Literal["shape", "wait"]
"""A result whose shape depends on data, or the host waiting for the device."""

Listener = Callable[[Kind, str], None]

_listeners: list[Listener] = []
_quiet = 0


def listen(listener: Listener) -> None:
    """Call `listener` with the kind and the operator of each event from now on."""
    _listeners.append(listener)


def tell(kind: Kind, operator: str) -> None:
    """Something happened on the device."""
    if not _quiet:
        for listener in _listeners:
            listener(kind, operator)


@contextmanager
def quiet() -> Iterator[None]:
    """Tell nothing meanwhile: what the emulator computes for itself happens on no NPU."""
    global _quiet
    _quiet += 1
    try:
        yield
    finally:
        _quiet -= 1
