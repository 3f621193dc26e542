"""Work on many names in forked workers, each with a time limit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

T = TypeVar("T")

SECONDS_EACH = 40
"""Processor time after which a name is given up and reported."""


class _OutOfTime(BaseException):
    """Not an Exception, so that no handler between here and torch swallows it."""


def _alarm(signum: int, frame: Any) -> None:
    raise _OutOfTime


def _guarded(job: tuple[Callable[[str], T], str]) -> tuple[str, T | None, str]:
    work, name = job
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
    try:
        return name, work(name), ""
    except _OutOfTime:
        return name, None, f"took more than {SECONDS_EACH} s"
    except Exception as error:
        return name, None, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _calm() -> None:
    torch.set_num_threads(1)

    # torch warns about deprecated calls that the samples make on purpose.
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def over(names: Sequence[str], work: Callable[[str], T], jobs: int) -> Iterator[tuple[str, T | None, str]]:
    """(name, result, error) in the order of the names; `work` must be a function of a module."""
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, initializer=_calm, maxtasksperchild=200) as pool:
        yield from pool.imap(_guarded, [(work, name) for name in names], chunksize=4)
