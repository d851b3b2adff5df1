"""Many files at once, in several processes."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from npulens.workspace.runs.garbage import collect_seldom
from npulens.workspace.runs.run import Checker

_Result = TypeVar("_Result")
_Work = Callable[[Checker, Path], _Result]


def in_processes(
    work: _Work[_Result], checker: Checker, paths: Sequence[Path], jobs: int | None = None
) -> Iterator[_Result]:
    """Do the same with every file; what comes of it comes in the order of the paths.

    Args:
        work: What to do; a function that has a name in its module.
        checker: What it is done with.
        paths: The files.
        jobs: How many processes to use; without it, as many as pay.
    """
    collect_seldom()
    # A fork is quickest by far, but of a process with threads it may hang.
    start = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    if jobs is None:
        jobs = 1 if len(paths) < _TOO_FEW_FILES[start] else min(_usable_processors(), _MOST_JOBS)
    jobs = min(jobs, len(paths))
    if jobs <= 1:
        for path in paths:
            yield work(checker, path)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    executor = ProcessPoolExecutor(jobs, get_context(start), _start_worker, (work, checker))
    try:
        chunk = max(1, min(_FILES_AT_ONCE, len(paths) // (jobs * 4)))
        yield from executor.map(_work_in_worker, paths, chunksize=chunk)
    finally:  # also where the caller wants no more
        executor.shutdown(cancel_futures=True)


_FILES_AT_ONCE = 16
_TOO_FEW_FILES = {"fork": 32, "spawn": 256}
"""Fewer are checked sooner than processes are started; measured on two processors."""
_MOST_JOBS = 4


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


_worker: tuple[_Work[Any], Checker]


def _start_worker(work: _Work[Any], checker: Checker) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=end_with_parent, daemon=True).start()
    collect_seldom()
    _worker = work, checker


def end_with_parent() -> None:
    """For a thread of a worker: it would not notice that its parent was killed."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def _work_in_worker(path: Path) -> Any:
    work, checker = _worker
    return work(checker, path)
