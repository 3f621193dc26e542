"""A child process ends when its parent does, however that ended: killed, crashed, out of memory, its terminal closed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

if sys.platform == "linux":
    # Loaded here, before a parent forks, so that its children need not.
    with contextlib.suppress(ImportError):
        import ctypes

_PR_SET_PDEATHSIG = 1
"""From <sys/prctl.h>."""


def end_with_parent(parent_ends: Callable[[], object]) -> None:
    """From now on this process ends when its parent does. `parent_ends` returns once that has happened, or before."""
    _ask_the_kernel()
    # It knows of a parent that had ended before, and is the way on other systems.
    _when(parent_ends, lambda: os._exit(1))


def end_with_stdin() -> None:
    """From now on this process, and all that it starts, end when stdin does, whose other end its parent holds.

    For the leader of a group of processes. Where there is a fork, a forked process returns from here, and the leader
    stays behind to end the group: also when the program is over, as it may have left others running. Stdin is empty
    for those who read it now.
    """
    held = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if not hasattr(os, "fork"):
        _when(lambda: os.read(held, 1), lambda: os._exit(1))
        return
    if program := os.fork():
        _when(lambda: os.read(held, 1), lambda: os.killpg(0, signal.SIGKILL))
        os.waitpid(program, 0)
        os.killpg(0, signal.SIGKILL)
    os.close(held)
    _ask_the_kernel()


def _ask_the_kernel() -> None:
    """Where it can, it ends even a process that never gives its interpreter out of hand, as a regular expression may."""
    if sys.platform == "linux":
        # There may be no ctypes, no such call, or a sandbox that refuses it.
        with contextlib.suppress(NameError, OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _when(happens: Callable[[], object], act: Callable[[], object]) -> None:
    def wait() -> None:
        try:
            happens()
        finally:
            act()

    threading.Thread(target=wait, name="gradguard-lifeline", daemon=True).start()
