"""One thread that analyses, so that the event loop never waits for it. The latest version of a text wins.

Jobs wait under the key of their program; a newer one takes the place of the older. What the user works at
goes first, then what was opened, what depends on an edit, and the rest of the workspace. Garbage is collected when nothing was asked for
a while, so that nobody waits for it.

In a browser Python has no threads. The loop itself then runs one job at a time, and messages that came meanwhile between two of them.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeVar

from gradguard.lsp import threads

log = logging.getLogger(__name__)
T = TypeVar("T")

STALE = 64
"""Entries of replaced jobs that the queue may hold besides as many as there are jobs."""
IDLE_SECONDS = 1.0
"""How long there must be no job before garbage is collected."""
WHOLE = 20
"""Of so many collections one looks at everything, which may take long; the others only at what is new since."""


class Urgency(IntEnum):
    """Which job goes first."""

    TYPING = 0
    OPENED = 1
    DEPENDENT = 2
    BACKGROUND = 3


@dataclass(slots=True)
class _Job:
    urgency: Urgency
    order: int
    work: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[BaseException], None]


class Worker:
    """A queue of jobs and the thread that runs them. All methods are for the loop's thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str = "gradguard-worker", *, collects: bool = True
    ) -> None:
        """`collects`: garbage, when idle."""
        self._loop = loop
        self._collects = collects
        self._collections = 0
        self._jobs: dict[str, _Job] = {}
        self._queue: list[tuple[Urgency, int, str]] = []
        """A heap. Of a job that was replaced or cancelled its entry stays behind and is passed over."""
        self._ready = threading.Condition()
        self._order = itertools.count()
        self._stopped = False
        self._threaded = threads.there_are()
        self._pause: asyncio.TimerHandle | None = None
        if self._threaded:
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(
        self,
        key: str,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[BaseException], None],
        urgency: Urgency = Urgency.TYPING,
    ) -> None:
        """Run `work` on the thread, then `done` with its result (or `failed`) on the loop.

        Of several jobs with one key that have not begun, only the last is run; the others' callbacks are
        never called.
        """
        with self._ready:
            before = self._jobs.get(key)
            if before is not None:
                urgency = min(urgency, before.urgency)
            self._put(key, _Job(urgency, next(self._order), work, done, failed))

    def hurry(self, key: str) -> None:
        """Somebody waits for a job: if it has not begun, it goes with those that are typed."""
        with self._ready:
            job = self._jobs.get(key)
            if job is not None and job.urgency > Urgency.TYPING:
                self._put(key, replace(job, urgency=Urgency.TYPING))

    def _put(self, key: str, job: _Job) -> None:
        self._jobs[key] = job
        heapq.heappush(self._queue, (job.urgency, job.order, key))
        if len(self._queue) > 2 * len(self._jobs) + STALE:
            self._queue = [(each.urgency, each.order, key) for key, each in self._jobs.items()]
            heapq.heapify(self._queue)
        self._ready.notify()
        if not self._threaded:
            self._loop.call_soon(self._turn)

    def cancel(self, key: str) -> None:
        """Forget a job that has not begun."""
        with self._ready:
            self._jobs.pop(key, None)

    @property
    def waiting(self) -> int:
        """Jobs that have not begun."""
        with self._ready:
            return len(self._jobs)

    def stop(self) -> None:
        """Begin no further job."""
        with self._ready:
            self._stopped = True
            self._jobs.clear()
            self._queue.clear()
            self._ready.notify()
        if self._pause is not None:
            self._pause.cancel()

    def _run(self) -> None:
        worked = False
        while True:
            with self._ready:
                while not self._jobs and not self._stopped:
                    if not self._ready.wait(IDLE_SECONDS if worked and self._collects else None):
                        self._collect()
                        worked = False
                if self._stopped:
                    return
                job = self._next()
            worked = True
            self._execute(job)

    def _turn(self) -> None:
        """Run a job on the loop. There are as many turns as jobs were given, so that some find none."""
        with self._ready:
            if self._stopped or not self._jobs:
                return
            job = self._next()
        self._execute(job)
        if self._pause is not None:
            self._pause.cancel()
        if self._collects:
            self._pause = self._loop.call_later(IDLE_SECONDS, self._collect)

    def _execute(self, job: _Job) -> None:
        try:
            self.tell(job.done, job.work())
        except BaseException as error:  # whatever it is, the next job must run
            self.tell(job.failed, error)

    def _collect(self) -> None:
        self._collections += 1
        if self._collections % WHOLE == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _next(self) -> _Job:
        while True:
            urgency, order, key = heapq.heappop(self._queue)
            job = self._jobs.get(key)
            if job is not None and (job.urgency, job.order) == (urgency, order):
                return self._jobs.pop(key)

    def tell(self, callback: Callable[[T], object], value: T) -> None:
        """Call something on the loop. For every thread."""
        try:
            self._loop.call_soon_threadsafe(callback, value)
        except RuntimeError:
            log.debug("a result came after the end of the loop")
