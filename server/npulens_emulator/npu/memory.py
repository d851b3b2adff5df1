"""Memory of the NPU; the resident memory of the process stands in for it."""

from pathlib import Path
from typing import Any

from npulens_emulator.npu.devices import TOTAL_MEMORY

_PAGE = 4096
_peak = 0


def memory_allocated(device: Any = None) -> int:
    """The resident memory of the process, in bytes; 0 where the system does not tell."""
    global _peak
    try:
        now = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
    _peak = max(_peak, now)
    return now


def max_memory_allocated(device: Any = None) -> int:
    """The largest that was seen."""
    memory_allocated()
    return _peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the largest."""
    global _peak
    _peak = 0


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """The statistics that scripts ask for most."""
    now, peak = memory_allocated(), max_memory_allocated()
    stats = {"num_alloc_retries": 0, "num_ooms": 0}
    for kind in ("allocated", "reserved", "active"):
        stats |= {f"{kind}_bytes.all.current": now, f"{kind}_bytes.all.peak": peak}
    return stats


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A line."""
    return f"emulated NPU: {memory_allocated()} bytes of the host are resident"


def memory_snapshot(mempool_id: Any = None) -> list[Any]:
    """Nothing."""
    return []


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory, in bytes."""
    return max(TOTAL_MEMORY - memory_allocated(), 0), TOTAL_MEMORY


def get_per_process_memory_fraction(device: Any = None) -> float:
    """All of it."""
    return 1.0


def get_allocator_backend() -> str:
    """The allocator."""
    return "native"


def empty_cache() -> None:
    """There is no cache."""
