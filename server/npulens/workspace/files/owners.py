"""Which process made a temporary file, and whether it may still need it."""

import hashlib
import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_DAY = 86_400
"""In seconds. What may belong to a process of another machine is left alone for so long."""


def mark() -> str:
    """A text for the names of temporary files that distinguishes this process from all others."""
    return f"{_machine()}-{os.getpid()}"


def is_gone(owner: str, modified: float) -> bool:
    """Whether nobody can need a file any more.

    Args:
        owner: The mark of the process that made it, or another text if that is not known.
        modified: When it was last written, in seconds.
    """
    machine, _, process = owner.partition("-")
    if machine == _machine() and process.isdecimal() and sys.platform != "win32":
        return not _is_running(int(process))
    return time.time() - modified > _DAY


@cache
def _machine() -> str:
    """What processes have in common that see each other: a start of a machine or a container."""
    import socket  # only who writes has to know

    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:8]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
