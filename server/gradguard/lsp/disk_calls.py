"""The server's way to the disk: no call of it can be made to wait for ever.

A folder of a network, or one behind a program of the user, may stop answering, and whoever asks the system for
a file in it hangs in the kernel. So calls are made by threads of their own. One that does not come back in time
is given up: what it asked for counts as unreadable until it does come back, and everybody else goes on.

In a browser there are no threads, and files lie in memory: calls are made at once.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from gradguard.disk.reading import SETTINGS_BYTES, Unreadable, read_file, read_utf8
from gradguard.lsp import threads

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that a call may take."""
HASTE = 0.1
"""The same while another hangs: it is mostly the same disk, and whoever reads a hundred files must not wait for each."""
MOST = 16
"""Threads that may be given up at a time. From then on nothing is read."""
RECOVERY = 10.0
"""Seconds for which a path is left alone after its call came back too late."""
TOGETHER = 4
"""Calls for files of one folder that must hang for the folder, and all below it, to be left alone."""


class Hangs(Unreadable):
    """The system does not answer."""

    def __init__(self) -> None:
        super().__init__("the disk does not answer")


class _GivenUp(BaseException):
    """Ends what a thread does for somebody who went on without it."""


class DiskCalls:
    """Makes calls to the disk. For every thread but the event loop's, as callers do wait, if not for long.

    hangs: told each path that is given up, from the calling thread. answers: told when it may be asked for again,
    from another one.
    """

    def __init__(
        self,
        *,
        hangs: Callable[[str], object] = lambda path: None,
        answers: Callable[[str], object] = lambda path: None,
    ) -> None:
        self._hangs, self._answers = hangs, answers
        self._calls: queue.SimpleQueue[_Call[Any]] = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()
        self._out: dict[str, int] = {}
        """Calls that hang, by path."""
        self._late: dict[str, float] = {}
        """When a path that hung may be asked for again."""
        self._here = threading.local()
        self._numbers = itertools.count(1)
        self._threaded = threads.there_are()

    def call(self, path: str, work: Callable[[], T]) -> T:
        """What `work` gives, which looks at the file at a path; others that it looks at it names by `touch`.

        Raises what it raises, and Hangs.
        """
        if not self._threaded:
            return work()
        call = _Call(path, work)
        with self._lock:
            out = sum(self._out.values())
            if out >= MOST:
                raise Hangs
            patience = HASTE if out else PATIENCE
            if self._idle:
                self._idle -= 1
            else:
                name = f"gradguard-disk-{next(self._numbers)}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._calls.put(call)
        if not call.ended.acquire(timeout=patience) and self._give_up(call):
            self._hangs(call.hung)
            raise Hangs
        if call.error is not None:
            raise call.error
        return cast(T, call.result)

    def touch(self, path: str) -> None:
        """Before `work` looks at a file. Raises Hangs for one that is left alone."""
        call: _Call[Any] | None = getattr(self._here, "call", None)
        if call is not None:
            if call.given_up:
                raise _GivenUp
            call.path = path
        if (self._out or self._late) and self.alone(path):
            raise Hangs

    def alone(self, path: str) -> bool:
        """Whether a path is left alone: it hangs, or it did until a moment ago, or its folder seems to."""
        with self._lock:
            until = self._late.get(path)
            if until is not None and time.monotonic() >= until:
                del self._late[path]
                until = None
            if until is not None or path in self._out:
                return True
            folders: dict[str, int] = {}
            for each, calls in self._out.items():
                folder = _folder(each)
                folders[folder] = folders.get(folder, 0) + calls
        return any(calls >= TOGETHER and path.startswith(folder) for folder, calls in folders.items())

    def text(self, path: str) -> str:
        """Text of a file with code. Raises Unreadable."""
        return self.call(path, lambda: self._touched(path, lambda: read_file(path).text))

    def utf8(self, path: str, limit: int = SETTINGS_BYTES) -> str:
        """Text of a file that is UTF-8 by its nature. Raises Unreadable."""
        return self.call(path, lambda: self._touched(path, lambda: read_utf8(path, limit)))

    def _touched(self, path: str, work: Callable[[], T]) -> T:
        self.touch(path)
        return work()

    def _give_up(self, call: _Call[Any]) -> bool:
        with self._lock:
            if call.over:
                return False
            call.given_up, call.hung = True, call.path
            self._out[call.hung] = self._out.get(call.hung, 0) + 1
            return True

    def _serve(self) -> None:
        while True:
            self._run(self._calls.get())

    def _run(self, call: _Call[Any]) -> None:
        self._here.call = call
        call.run()
        self._here.call = None
        with self._lock:
            call.over = True
            self._idle += 1
            if call.given_up:
                self._out[call.hung] -= 1
                if not self._out[call.hung]:
                    del self._out[call.hung]
                    self._late[call.hung] = time.monotonic() + RECOVERY
        call.ended.release()
        if call.given_up:
            self._answers(call.hung)


class _Call(Generic[T]):
    """One call on its way. `path` is what it looks at now."""

    __slots__ = ("ended", "error", "given_up", "hung", "over", "path", "result", "work")

    def __init__(self, path: str, work: Callable[[], T]) -> None:
        self.path = path
        self.work = work
        self.ended = threading.Lock()
        self.ended.acquire()
        self.over = self.given_up = False
        self.hung = ""
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # the caller's matter, whatever it is
            self.error = error


def _folder(path: str) -> str:
    """The folder in which a file or a package is looked up."""
    folder, name = os.path.split(path)
    if name == "__init__.py":
        folder = os.path.dirname(folder)
    return folder.rstrip(os.sep) + os.sep
