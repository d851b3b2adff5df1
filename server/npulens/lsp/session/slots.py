"""Work in the background where, for each key, only the newest input matters."""

import asyncio
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Input = TypeVar("Input")
Result = TypeVar("Result")

IsSuperseded = Callable[[], bool]
"""Tells work in progress that nobody waits for it any more."""


class LatestWins(Generic[Key, Input, Result]):
    """One slot per key, and one thread that works on whatever the slots hold.

    A new input takes the place of one still waiting in its slot. One being worked on is marked as
    superseded; whatever comes of it is dropped. Of several waiting slots the one filled last is
    served first, since that is where the user is.

    All methods belong to one event loop and never wait; `work` and `complete` alone run on the
    thread. There is no delay before work starts: an idle thread takes an input at once, a busy one
    finds the newest. What results are to be completed with is worked on when no input waits.
    """

    def __init__(
        self,
        work: Callable[[Input, IsSuperseded], Result | None],
        deliver: Callable[[Key, Result], None],
        failed: Callable[[Key, Exception], None],
        complete: Callable[[Input, Result, IsSuperseded], Result | None] | None = None,
    ) -> None:
        """Set up without starting anything.

        Args:
            work: Makes a result of an input, or `None` once it finds itself superseded.
            deliver: Called in the loop with each result whose input is still the newest.
            failed: Called in the loop instead, if work on the newest input raised.
            complete: Makes more of a result where that is requested, or `None` once superseded.
        """
        self._complete = complete
        self._later: list[tuple[_Job[Key, Input, Result], Result]] = []
        self._work = work
        self._deliver = deliver
        self._failed = failed
        self._newest: dict[Key, _Job[Key, Input, Result]] = {}
        self._waiting: dict[Key, _Job[Key, Input, Result]] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def submit(self, key: Key, value: Input) -> None:
        """Let `value` take the slot of `key`."""
        job = _Job[Key, Input, Result](key, value, asyncio.get_running_loop())
        if (older := self._newest.get(key)) is not None:
            older.supersede()
        self._newest[key] = job
        with self._changed:
            self._waiting.pop(key, None)
            self._waiting[key] = job
            self._changed.notify()
        if self._thread is None:
            # A daemon: the end of the process does not wait for work that nobody will see.
            self._thread = threading.Thread(target=self._run, name="npulens-analysis", daemon=True)
            self._thread.start()

    def forget(self, key: Key) -> None:
        """Empty the slot of `key`; nothing more is delivered for it."""
        if (job := self._newest.pop(key, None)) is not None:
            job.supersede()
        with self._changed:
            self._waiting.pop(key, None)

    async def latest(self, key: Key) -> Result | None:
        """The result for what the slot of `key` holds now, as soon as it is there.

        `None` if the slot is empty, is filled anew in the meantime, or if work failed.
        """
        job = self._newest.get(key)
        return None if job is None else await asyncio.shield(job.outcome)

    async def completed(self, key: Key) -> Result | None:
        """What `latest` is, completed; `None` where that is, or if completing it failed."""
        job = self._newest.get(key)
        result = None if job is None else await asyncio.shield(job.outcome)
        if job is None or result is None or job.is_superseded():
            return None
        if job.completion is None:
            job.completion = job.loop.create_future()
            with self._changed:
                self._later.append((job, result))
                self._changed.notify()
        return await asyncio.shield(job.completion)

    def finished_whole(self, key: Key) -> Result | None:
        """What `completed` gives, if it is there already."""
        job = self._newest.get(key)
        future = None if job is None else job.completion
        return future.result() if future is not None and future.done() else None

    def finished(self, key: Key) -> Result | None:
        """The result for what the slot of `key` holds now, if it is there already."""
        job = self._newest.get(key)
        return job.outcome.result() if job is not None and job.outcome.done() else None

    def stop(self) -> None:
        """Empty all slots and end the thread after what it is at."""
        for key in list(self._newest):
            self.forget(key)
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while (step := self._next()) is not None:
            job, first = step
            result: Result | None = None
            error: Exception | None = None
            try:
                if job.is_superseded():
                    pass
                elif first is None:
                    result = self._work(job.value, job.is_superseded)
                elif self._complete is not None:
                    result = self._complete(job.value, first, job.is_superseded)
            except Exception as raised:
                error = raised
            try:
                finish = self._finish if first is None else self._finish_whole
                job.loop.call_soon_threadsafe(finish, job, result, error)
            except RuntimeError:  # the loop is closed: the server is ending
                return

    def _next(self) -> "tuple[_Job[Key, Input, Result], Result | None] | None":
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._later or self._stopped)
            if self._stopped:
                return None
            return (self._waiting.popitem()[1], None) if self._waiting else self._later.pop(0)

    def _finish_whole(
        self, job: "_Job[Key, Input, Result]", result: Result | None, error: Exception | None
    ) -> None:
        if job.completion is None or job.completion.done():
            return
        if error is not None:
            self._failed(job.key, error)
        job.completion.set_result(result)

    def _finish(
        self, job: "_Job[Key, Input, Result]", result: Result | None, error: Exception | None
    ) -> None:
        if job.is_superseded():
            return
        try:
            if error is not None:
                self._failed(job.key, error)
            elif result is not None:
                self._deliver(job.key, result)
        finally:
            job.outcome.set_result(result)


class _Job(Generic[Key, Input, Result]):
    """One input in its slot; `outcome` and `completion` are set in the loop only."""

    def __init__(self, key: Key, value: Input, loop: asyncio.AbstractEventLoop) -> None:
        self.key = key
        self.value = value
        self.loop = loop
        self.outcome: asyncio.Future[Result | None] = loop.create_future()
        self.completion: asyncio.Future[Result | None] | None = None
        self._superseded = False

    def is_superseded(self) -> bool:
        return self._superseded

    def supersede(self) -> None:
        self._superseded = True
        for future in (self.outcome, self.completion):
            if future is not None and not future.done():
                future.set_result(None)
