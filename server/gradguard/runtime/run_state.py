"""What all parts of the monitor share: what is known of the watched run, and what each of its threads is doing.

Nothing here knows the parts; they are given this and put together in `watched_run`.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from gradguard.runtime.collect import Findings
from gradguard.runtime.frames import Frames, Site
from gradguard.runtime.graph import LiveGraph, SavedTensor
from gradguard.runtime.tracer import Tracer

MOST_TROUBLES = 20


@dataclass(slots=True)
class OptimizerStep:
    """An optimizer step under way: what its parameters looked like before, and the code of the closures it was given.

    `stopped`: the watch was taken off for it.
    """

    site: Site
    stopped: bool
    closures: tuple[CodeType, ...] = ()
    versions: list[tuple[Any, int]] = field(default_factory=list)


@dataclass(slots=True)
class ThreadState:
    """What a thread is doing.

    silent: the monitor itself is computing. depth: runs of the autograd engine under way. engine_watched: whether the
    code that called them is watched. steps: optimizer steps under way. changed: what the `ctx` of the custom backward
    that runs has kept and what was written since, until it is read.
    """

    silent: bool = False
    depth: int = 0
    engine_watched: bool = False
    steps: list[OptimizerStep] = field(default_factory=list)
    changed: list[SavedTensor] = field(default_factory=list)


class RunState:
    """The state of one watched run. `closed` until the watching starts, and again once it has ended."""

    def __init__(self, light: bool, always_user: tuple[str, ...]) -> None:
        self.light = light
        self.frames = Frames(always_user)
        self.graph = LiveGraph()
        self.findings = Findings()
        self.tracer = Tracer(self.frames)
        self.closed = True
        self.operators = 0
        self.seconds = 0.0
        self.limits: dict[str, None] = {}
        self.troubles: list[str] = []
        self._local = threading.local()

    def thread(self) -> ThreadState:
        """What the calling thread is doing."""
        state: ThreadState | None = getattr(self._local, "state", None)
        if state is None:
            state = self._local.state = ThreadState()
        return state

    def closures(self) -> Iterator[CodeType]:
        """The code that this thread's optimizer steps under way were given to run."""
        return (code for step in self.thread().steps for code in step.closures)

    def sees(self) -> bool:
        """Whether what this thread does now is the program's own doing."""
        return not self.closed and not self.thread().silent

    @contextmanager
    def looking(self) -> Iterator[None]:
        """The monitor looks at tensors: no code of the program runs for that, and a failure stays the monitor's own."""
        try:
            with torch._C.DisableTorchFunction():
                yield
        except Exception as error:
            self.trouble(error)

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """What the monitor computes itself is not watched."""
        thread = self.thread()
        before, thread.silent = thread.silent, True
        try:
            yield
        finally:
            thread.silent = before

    def say(self, limit: str) -> None:
        """Something the monitor could not see, told once."""
        self.limits.setdefault(limit)

    def trouble(self, error: Exception) -> None:
        """A failure of the monitor must not become one of the script."""
        if len(self.troubles) < MOST_TROUBLES:
            self.troubles.append("".join(traceback.format_exception(error)))
        if os.environ.get("GRADGUARD_DEBUG"):
            sys.__stderr__ and print(self.troubles[-1], file=sys.__stderr__)
