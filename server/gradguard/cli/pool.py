"""Run jobs in this process or in several, and hand the results back in the order of the jobs."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from gradguard.cli.refused import Refused
from gradguard.cli.worker import COLLECT_AFTER, Checked, Checker, Job, collecting_rarely

FEW = 16
"""Up to so many files, starting other processes costs more than it gains."""


class WorkerDied(Refused):
    """A worker process ended before its work was done."""


def default_jobs() -> int:
    """How many processors this process may use."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def run(jobs: Sequence[Job], make: Callable[[], Checker], processes: int) -> Iterator[Checked]:
    """Check all jobs; results come in the order of the jobs. Raises WorkerDied."""
    processes = min(processes, max(1, len(jobs) // 2))
    if processes <= 1:
        checker = make()
        with collecting_rarely():
            for job in jobs:
                yield checker.check(job)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Forked workers start at once and share what is loaded; no thread runs yet, so forking is safe.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    # Neighbours import the same modules, so a worker takes a few in a row; few enough that none ends late.
    chunk = max(1, min(16, len(jobs) // (processes * 8)))
    executor = ProcessPoolExecutor(processes, context, _start, (make,))
    try:
        yield from executor.map(_work, jobs, chunksize=chunk)
    except BrokenProcessPool:
        raise WorkerDied(
            "a worker process was ended from outside, perhaps for want of memory; try --jobs 1"
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


_checker: Checker | None = None


def _start(make: Callable[[], Checker]) -> None:
    global _checker
    # The parent answers an interrupt for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(*COLLECT_AFTER)
    _checker = make()


def _work(job: Job) -> Checked:
    assert _checker is not None
    return _checker.check(job)
