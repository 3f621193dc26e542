"""Work on many names in forked workers, each with a limit; a worker that crashes costs only the name it was at."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import torch

T = TypeVar("T")

SECONDS_EACH = 600
"""Processor time after which a name is given up and reported.

Only for what hangs: the slowest class takes about 30 s on a quiet machine, and must also be done on a crowded one."""

SILENT = 1200
"""Seconds after which a worker that has not answered is ended: one that sleeps uses no processor time, and C code that
hangs lets no handler of a signal run."""


class Lost(str):
    """Why there is no answer for a name: its worker crashed or hung, which an error of the work itself does not do."""


class _OutOfTime(BaseException):
    """Not an Exception, so that no handler between here and torch swallows it."""


def _alarm(signum: int, frame: Any) -> None:
    raise _OutOfTime


def _serve(work: Callable[[str], Any], pipe: Connection) -> None:
    torch.set_num_threads(1)
    # torch warns about deprecated calls that the samples make on purpose, also from C++.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGPROF, _alarm)
    while (name := pipe.recv()) is not None:
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
            answer: tuple[Any, str] = (work(name), "")
        except _OutOfTime:
            answer = (None, Lost(f"took more than {SECONDS_EACH} s"))
        except Exception as error:
            answer = (None, f"{type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(answer)


def over(names: Sequence[str], work: Callable[[str], T], jobs: int) -> Iterator[tuple[str, T | None, str]]:
    """(name, result, error) in the order of the names; an error is a `Lost` where the worker is to blame."""
    context = multiprocessing.get_context("fork")
    left = list(reversed(names))
    done: dict[str, tuple[T | None, str]] = {}
    busy: dict[Connection, tuple[Any, str, float]] = {}

    def start() -> None:
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(work, theirs), daemon=True)
        process.start()
        theirs.close()
        give(mine, process)

    def give(pipe: Connection, process: Any) -> None:
        name = left.pop() if left else None
        pipe.send(name)
        if name is not None:
            busy[pipe] = (process, name, time.monotonic() + SILENT)

    for _ in range(min(jobs, len(left))):
        start()
    while busy:
        soonest = min(until for _, _, until in busy.values())
        answering = wait(list(busy), timeout=max(0.0, soonest - time.monotonic()))
        for pipe, (process, _, until) in busy.items():
            if pipe not in answering and until <= time.monotonic():
                process.kill()  # its pipe ends, which the next wait tells
        for ready in answering:
            assert isinstance(ready, Connection)
            process, name, _ = busy.pop(ready)
            try:
                done[name] = ready.recv()
            except (EOFError, ConnectionResetError):
                process.join()
                done[name] = (None, Lost(f"the worker was lost (exit code {process.exitcode})"))
                if left:
                    start()
                continue
            give(ready, process)
    for name in names:
        yield name, *done[name]
