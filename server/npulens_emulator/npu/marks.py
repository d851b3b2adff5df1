"""Marks for the profiler of the NPU, which are written nowhere.

Source of the names and signatures: Ascend/op-plugin docs torch_npu-npu-mstx.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any


class mstx:  # noqa: N801
    """`torch.npu.mstx`."""

    _ranges = count(1)

    @staticmethod
    def mark(message: str = "None", stream: Any = None, domain: str = "default") -> None:
        """Mark a moment."""

    @staticmethod
    def range_start(message: str = "None", stream: Any = None, domain: str = "default") -> int:
        """Begin a range; its number ends it."""
        return next(mstx._ranges)

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """End a range."""

    @staticmethod
    def range_push(message: str, stream: Any = None, domain: str = "default") -> int:
        """Begin a range inside of those that are open."""
        return next(mstx._ranges)

    @staticmethod
    def range_pop(domain: str = "default") -> int:
        """End the range that was begun last."""
        return 0

    @staticmethod
    @contextmanager
    def mstx_range(
        msg: str = "None", stream: Any = None, domain: str = "default"
    ) -> Iterator[None]:
        """A range around a block or a function."""
        yield
