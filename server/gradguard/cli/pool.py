"""Run jobs in this process or in several, and hand the results back in the order of the jobs.

A worker process that ends before its time costs its file alone: what others found is kept, the file is tried once more
when nothing else runs, and then named.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from gradguard.cli.result import Trouble
from gradguard.cli.worker import Checked, Checker, Job, collecting_rarely

if TYPE_CHECKING:
    from gradguard.cli.process import Ended

FEW = 16
"""Up to so many files, starting other processes costs more than it gains."""
MOST = 60
"""Windows waits for no more than 63 things at once."""


def default_jobs() -> int:
    """How many processors this process may use."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def run(jobs: Sequence[Job], make: Callable[[], Checker], processes: int) -> Iterator[Checked]:
    """Check all jobs; results come in the order of the jobs. Who stops asking ends all processes at once."""
    processes = min(processes, max(1, len(jobs) // 2), MOST)
    if processes <= 1:
        yield from _here(jobs, make)
        return
    early: dict[int, Checked] = {}
    at = 0
    with closing(_spread(jobs, make, processes)) as found:
        for index, checked in found:
            early[index] = checked
            while at in early:
                yield early.pop(at)
                at += 1


def _here(jobs: Iterable[Job], make: Callable[[], Checker]) -> Iterator[Checked]:
    checker = make()
    with collecting_rarely():
        for job in jobs:
            yield checker.check(job)


def _spread(
    jobs: Sequence[Job], make: Callable[[], Checker], processes: int
) -> Generator[tuple[int, Checked], None, None]:
    """Each index with its result, as they come."""
    # Few files need no processes.
    from multiprocessing.connection import wait

    from gradguard.cli.process import Ended, WorkerProcess

    # Neighbours import the same modules, so a worker takes a few in a row; few enough that none ends late.
    chunk = max(1, min(16, len(jobs) // (processes * 8)))
    left = deque(range(len(jobs)))
    lost: dict[int, Ended] = {}
    crew: list[WorkerProcess] = []

    def hire(count: int) -> None:
        # Where the system gives no more processes, those there are do the work, and without any this one.
        with suppress(OSError):
            for _ in range(count):
                crew.append(WorkerProcess(jobs, make))

    try:
        hire(processes)
        while crew and (left or any(worker.given for worker in crew)):
            heard = wait([worker.connection for worker in crew])
            for worker in [each for each in crew if each.connection in heard]:
                try:
                    yield from worker.answers()
                except Ended as how:
                    crew.remove(worker)
                    if worker.given:
                        lost[worker.given.popleft()] = how
                        left.extendleft(reversed(worker.given))
                    # In the place of one that never came to its work, none would.
                    if worker.ready and left:
                        hire(1)
            for worker in crew:
                if left and worker.ready and not worker.given:
                    worker.give([left.popleft() for _ in range(min(chunk, len(left)))])
    finally:
        for worker in crew:
            worker.close()
    yield from zip(left, _here((jobs[index] for index in left), make))
    for index, ended in lost.items():
        yield index, _again(jobs[index], make, ended)


def _again(job: Job, make: Callable[[], Checker], how: Ended) -> Checked:
    """Try a job once more, at which a worker process ended; nothing else runs now."""
    from gradguard.cli.process import Ended, WorkerProcess

    said = f"{how} and was given up"
    if not how.for_good:
        said = f"{how}, and no second one could be started"
        with suppress(OSError), closing(WorkerProcess([job], make)) as worker:
            worker.give([0])
            try:
                while True:
                    for _, checked in worker.answers():
                        return checked
            except Ended as second:
                said = f"{second}, also when nothing else ran"
    return Checked(job.path, troubles=(Trouble(job.path, f"{said}; `exclude` leaves the file out"),))
