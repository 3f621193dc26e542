"""One program under the monitor in one process: from its start to its report, however it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradguard.runtime import handlers
from gradguard.runtime.children import Children
from gradguard.runtime.endings import Endings
from gradguard.runtime.programs import NotStarted
from gradguard.runtime.ranks import DefaultGroup, Member, siblings, with_rank
from gradguard.runtime.report import MAIN, RunReport, write_last_run
from gradguard.runtime.watched_run import WatchedRun

EVERY = 60.0
"""Seconds between two reports of a run that goes on."""

SHARE = 50
"""What is written takes at most one part in so many of the run."""

LATE = 10.0
"""Seconds for which ranks that end with the program that started them are waited for."""


class Watching:
    """Runs a program once. `tell` is given the report of all processes, in the one process that has to tell it."""

    def __init__(
        self,
        command: tuple[str, ...],
        light: bool,
        member: Member,
        tell: Callable[[RunReport], None],
        complain: Callable[[str], None],
        always_user: tuple[str, ...] = (),
        process: str = MAIN,
    ) -> None:
        """`complain` is told why something could not be written."""
        self.watched = WatchedRun(light, always_user)
        self.member = member
        self.report: RunReport | None = None
        self.children = Children(command, light, self._folder, arrive)
        self._command = command
        self._tell = tell
        self._complain = complain
        self._process = process
        self.group = DefaultGroup()
        self._endings = Endings(self._ended)
        self._error: BaseException | None = None
        self._owner = os.getpid()
        self._kept = time.perf_counter()
        self._cost = 0.0

    def run(self, start: Callable[[], None], raised: Callable[[BaseException], None]) -> BaseException | None:
        """Runs the program and returns what ended it, of which `raised` is told before its threads are waited for."""
        watched = self.watched
        if self.member.rank is not None or self.member.started:
            self._do(self.member.join)
        self.group.install()
        watched.on_pulse = self._pulsed
        watched.start(sys._getframe())
        self.children.install()
        self._endings.install()
        try:
            with handlers.told(watched.caught, watched.frames.is_user_file):
                try:
                    start()
                except BaseException as error:
                    self._error = error
                    if not isinstance(error, NotStarted):
                        raised(error)
                if not watched.forked:
                    self._wait()
        except BaseException as error:
            self._error = self._error or error
        if isinstance(self._error, NotStarted):
            watched.stop()
        if not watched.forked:
            self._endings.end()
            self._endings.remove()
        self.children.remove()
        self.group.remove()
        return self._error

    def _wait(self) -> None:
        """As Python does before a process ends, only that the report comes after it."""
        with contextlib.suppress(KeyboardInterrupt):
            for thread in threading.enumerate():
                if not thread.daemon and thread is not threading.current_thread():
                    thread.join()
            if self.member.joined and "multiprocessing" in sys.modules:
                for process in siblings():
                    process.join()
            until = time.perf_counter() + LATE
            for process in self.children.launched:
                with contextlib.suppress(Exception):
                    process.wait(max(until - time.perf_counter(), 0))

    def _cause(self) -> BaseException | None:
        """What ended the program. What starts a process turns errors of its function into exits."""
        error = self._error
        if isinstance(error, SystemExit) and self._process != MAIN and error.__context__ is not None:
            return error.__context__
        return error

    def _folder(self) -> str:
        return self.member.folder

    def _do(self, act: Callable[[], Any]) -> Any:
        """What concerns the disk may fail, and costs no more than what it is about."""
        try:
            return act()
        except OSError as error:
            self._complain(f"cannot keep the last run: {error.filename}: {error.strerror}")
            return None

    def _pulsed(self) -> None:
        now = time.perf_counter()
        if now - self._kept < max(EVERY, SHARE * self._cost) or os.getpid() != self._owner:
            return
        self._kept = now
        state = self.watched.state
        with state.looking(), state.silenced():
            report = self._do(lambda: self.member.so_far(self._of_now()))
            if report is not None:
                self._keep(report)
        self._cost = time.perf_counter() - now

    def _keep(self, report: RunReport) -> None:
        self._do(lambda: write_last_run(report, self.member.root))

    def _of_now(self) -> RunReport:
        return with_rank(RunReport.of(self.watched, self._command), self.member, self.group, self._process)

    def _ended(self, number: int | None) -> None:
        """The process ends, by a signal if there is a number."""
        watched = self.watched
        if watched.forked or watched.closed:
            return
        if number is not None:
            watched.state.say("The run was ended by a signal; what would have come later was not seen.")
        watched.stop(self._cause() if number is None else KeyboardInterrupt())
        own = self._of_now()
        try:
            whole = self.member.end(own)
        except OSError as error:
            self._complain(f"cannot keep the last run: {error.filename}: {error.strerror}")
            whole = own
        if whole is None:
            # Should this be the last that is heard of the job, it is there.
            if not self.member.started:
                with contextlib.suppress(OSError):
                    self._keep(self.member.so_far(own))
            return
        self.report = whole
        self._keep(whole)
        self._tell(whole)


def _index(process: Any) -> int | None:
    """Which of its processes `torch.multiprocessing.spawn` calls this one: functions take it as their rank."""
    if getattr(process._target, "__module__", None) != "torch.multiprocessing.spawn":
        return None
    given = process._args[1:2]
    return int(given[0]) if given and isinstance(given[0], int) else None


def arrive(process: Any, folder: str, light: bool) -> Any:
    """Makes a process that has come to its interpreter run under the monitor."""
    plain = process.run

    def run() -> None:
        member = Member(Path.cwd(), folder, None)
        watching = Watching(
            (), light, member, lambda report: None, lambda message: None, process=process.name
        )
        watching.group.rank = _index(process)
        error = watching.run(plain, lambda error: None)
        if error is not None:
            raise error

    process.run = run
    return process
