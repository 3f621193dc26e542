"""How a process ends other than by the end of its program: each way first lets the report be written.

`os._exit` is replaced, and SIGTERM and SIGHUP, with which launchers and terminals end a process, are handled as long as
the program itself handles them in no other way. The process then ends as it would have: by the signal.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 2.0
"""Seconds after which a signal is handled outside of the main thread, which may be waiting in a collective."""

_current: Endings | None = None
_masks = threading.local()


class Endings:
    """`ending` is called once, with the signal that ends the process or None."""

    def __init__(self, ending: Callable[[int | None], None]) -> None:
        self._ending = ending
        self._leave = os._exit
        self._handled: list[int] = []
        self._signal, self._getsignal = signal.signal, signal.getsignal
        self._wakeup = -1
        self._pid = os.getpid()
        self._begun = False
        self._done = threading.Event()
        self._once = threading.RLock()
        self._signalled: int | None = None

    def install(self) -> None:
        global _current
        _current = self
        os._exit = self._leaving
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._caught)
                self._handled.append(number)
        if self._handled:
            # To the program the signals are as it left them: frameworks set handlers only where there are none.
            signal.signal, signal.getsignal = self._set, self._get  # type: ignore[assignment]
            self._listen()

    def remove(self) -> None:
        """Once `ending` is not needed any more, or in a forked child, whose end is its own."""
        global _current
        _current = None
        os._exit = self._leave
        signal.signal, signal.getsignal = self._signal, self._getsignal
        # Only the main thread may; in others it is too late to matter.
        with contextlib.suppress(ValueError):
            for number in self._handled:
                if signal.getsignal(number) == self._caught:
                    signal.signal(number, signal.SIG_DFL)
            if self._wakeup != -1:
                current = signal.set_wakeup_fd(-1)
                if current not in (-1, self._wakeup):
                    signal.set_wakeup_fd(current)
                # The thread that listens ends with it.
                os.close(self._wakeup)
                self._wakeup = -1
        self._handled.clear()

    def end(self, number: int | None = None) -> None:
        """Lets the report be written, once; who comes second waits for it. Signals of meanwhile are obeyed after it."""
        with self._once:
            if not self._begun:
                self._begun = True
                try:
                    self._ending(number)
                finally:
                    self._done.set()
        if number is None and self._signalled is not None:
            self._die(self._signalled)

    def _leaving(self, status: int) -> NoReturn:
        self.end()
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        self._leave(status)

    @property
    def handled(self) -> tuple[int, ...]:
        """The signals that come here."""
        return tuple(self._handled)

    def _caught(self, number: int, frame: Any) -> None:
        if self._begun and not self._done.is_set():
            self._signalled = number
            return
        self.end(number)
        self._die(number)

    def _die(self, number: int) -> None:
        self.remove()
        self._signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _set(self, number: int, handler: Any) -> Any:
        if handler == signal.SIG_DFL and number in self._handled:
            handler = self._caught
        before = self._signal(number, handler)
        return signal.SIG_DFL if before == self._caught else before

    def _get(self, number: int) -> Any:
        handler = self._getsignal(number)
        return signal.SIG_DFL if handler == self._caught else handler

    def _listen(self) -> None:
        """Python handles signals between two of its instructions, for which a wait in a library leaves no time."""
        if sys.platform != "linux":
            # Elsewhere a child may write there until it runs its own program.
            return
        before = signal.set_wakeup_fd(-1)
        if before != -1:
            signal.set_wakeup_fd(before)
            return
        reading, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        # Not one of `threading`: a program may count its threads.
        _thread.start_new_thread(self._wait, (reading,))

    def _wait(self, reading: int) -> None:
        while True:
            told = os.read(reading, 1)
            if not told:
                os.close(reading)
                return
            number = told[0]
            if number not in self._handled or self._getsignal(number) != self._caught:
                continue
            if self._done.wait(PATIENCE) or self._begun:
                continue
            self.end(number)
            with contextlib.suppress(Exception):
                import ctypes

                ctypes.CDLL(None).signal(number, 0)
                os.kill(self._pid, number)


def _before_fork() -> None:
    """A child that is ended at once must not have its signal handled, and lost, as if it were its parent."""
    if _current is not None:
        _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _current.handled)


def _after_fork() -> None:
    before, _masks.before = getattr(_masks, "before", None), None
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _after_fork_in_child() -> None:
    if _current is not None:
        _current.remove()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
