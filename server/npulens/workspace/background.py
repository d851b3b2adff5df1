"""Checking many files beside other work: in processes that yield to it, and that can be stopped."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path

from npulens.catalog.model import ProjectFacts, Shim
from npulens.catalog.tables import Catalogue
from npulens.workspace.configuration import Configuration
from npulens.workspace.run import Checker, FileReport

_TOO_FEW = 64
"""Fewer files are checked before a process has started."""
_FILES_AT_ONCE = 8
_PATIENCE = 10
"""Lower priority, in steps of the system."""


def check_in_background(
    paths: Sequence[Path],
    catalogue: Catalogue,
    configuration: Configuration,
    project: ProjectFacts,
    shims: Mapping[str, Shim],
    is_cancelled: Callable[[], bool],
) -> Iterator[FileReport]:
    """Check files; the reports come in the order of the paths, until nobody wants them any more."""
    if len(paths) < _TOO_FEW:
        checker = Checker(catalogue, configuration, project, shims)
        for path in paths:
            if is_cancelled():
                return
            yield checker.check_file(path)
        return
    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(
        max(1, min(4, (os.cpu_count() or 2) - 1)),
        get_context("spawn"),  # a fork of a process with threads may hang
        _start,
        (catalogue, configuration, project, shims),
    )
    try:
        rest = iter(paths)
        waiting: list[Future[list[FileReport]]] = []
        while True:
            # Few portions are handed over ahead, so that there is little to cancel.
            while len(waiting) < 8 and (portion := list(islice(rest, _FILES_AT_ONCE))):
                waiting.append(executor.submit(_check, portion))
            if not waiting or is_cancelled():
                return
            yield from waiting.pop(0).result()
    finally:
        # Who cancels may be a loop that must not wait; else the processes are seen off.
        executor.shutdown(wait=not is_cancelled(), cancel_futures=True)


_checker: Checker


def _start(
    catalogue: Catalogue,
    configuration: Configuration,
    project: ProjectFacts,
    shims: Mapping[str, Shim],
) -> None:
    global _checker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    if sys.platform != "win32":
        os.nice(_PATIENCE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _checker = Checker(catalogue, configuration, project, shims)


def _end_with_parent() -> None:
    """A process that waits for work would not notice that its parent was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _check(portion: Sequence[Path]) -> list[FileReport]:
    return [_checker.check_file(path) for path in portion]
