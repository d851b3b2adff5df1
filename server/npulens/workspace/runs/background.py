"""Checking many files beside other work: in processes that yield to it, and that can be stopped."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path

from npulens.workspace.runs.cache import FindingCache
from npulens.workspace.runs.packed_report import PackedReport, is_sound, packed
from npulens.workspace.runs.processes import end_with_parent
from npulens.workspace.runs.run import Checker

_TOO_FEW = 64
"""Fewer files are checked before a process has started."""
_FILES_AT_ONCE = 8
_PATIENCE = 10
"""Lower priority, in steps of the system."""


def check_in_background(
    paths: Sequence[Path],
    checker: Checker,
    is_cancelled: Callable[[], bool],
    *,
    keeps: bool,
) -> Iterator[PackedReport]:
    """Check files; the reports come in the order of the paths, until the work is cancelled.

    If it `keeps` what it finds, processes use `.npulens_cache` as `npulens check` does. A few files
    are checked without it: that takes less time than to read it.
    """
    if len(paths) < _TOO_FEW:
        for path in paths:
            if is_cancelled():
                return
            yield packed(checker.check_file(path))
        return

    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(
        max(1, min(4, (os.cpu_count() or 2) - 1)),
        get_context("spawn"),  # a fork of a process with threads may hang
        _start,
        (checker, keeps),
    )
    try:
        rest = iter(paths)
        waiting: list[Future[list[PackedReport]]] = []
        while True:
            # Few portions are submitted ahead, so that there is little to cancel.
            while len(waiting) < 8 and (portion := list(islice(rest, _FILES_AT_ONCE))):
                waiting.append(executor.submit(_check, portion))
            if not waiting or is_cancelled():
                return
            yield from waiting.pop(0).result()
    finally:
        # Who cancels may be a loop that must not wait; else the processes are seen off.
        executor.shutdown(wait=not is_cancelled(), cancel_futures=True)


class _Worker:
    """What one of the processes checks with."""

    def __init__(self, checker: Checker, keeps: bool) -> None:
        self._anew = self._checker = checker
        self._cache: FindingCache | None = None
        if keeps:
            self._checker, self._cache = checker.with_cache()
            # At the end of the process, also where the rest of its work is cancelled.
            Finalize(None, self._cache.save, exitpriority=0)

    def check(self, path: Path) -> PackedReport:
        report = self._checker.check_file(path)
        if self._cache is not None and report.digest:
            self._cache.add(report)
        elif not is_sound(report):  # known from a cache that somebody has made up
            report = self._anew.check_file(path)
        return packed(report)


_worker: _Worker


def _start(checker: Checker, keeps: bool) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    if sys.platform != "win32":
        os.nice(_PATIENCE)
    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker = _Worker(checker, keeps)


def _check(portion: Sequence[Path]) -> list[PackedReport]:
    return [_worker.check(path) for path in portion]
