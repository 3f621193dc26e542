"""One worker process: it holds nothing open that its parent holds, ends with it, and costs no more than one file.

    parent                            worker
    WorkerProcess()   ── fork/spawn ─>  lets go of what it inherited
                     <──── None ──────  is ready
    give(indices)     ── indices ────>  checks these jobs, in this order
    answers()        <─ (index, Checked) ─  after each
    Ended            <── end of file ─  however it ended; the first job without an answer is the one it was at

Each worker has a pipe of its own. With one that all write to, as the pools of the standard library have, a worker that
is killed while it writes leaves half an answer, and whoever reads that waits for ever.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

from gradguard.check.api import lost
from gradguard.cli.result import Trouble
from gradguard.cli.worker import COLLECT_AFTER, Checked, Checker, Job
from gradguard.runtime.lifeline import end_with_parent

SECONDS = 120.0
"""Processor time after which a file is given up. Only for what hangs: the budget of steps ends an analysis long before."""
LEAVE_SECONDS = 5.0
"""How long a process may take to be gone once it has closed its pipe or was killed."""

_FORKS = sys.platform == "linux"
"""Forked workers start at once and share what is loaded. Elsewhere system libraries do not survive a fork."""


class Ended(Exception):
    """A worker process ended; the message says how."""

    def __init__(self, said: str, code: int | None) -> None:
        super().__init__(said)
        self.code = code

    @property
    def for_good(self) -> bool:
        """Whether trying again would end the same way."""
        return hasattr(signal, "SIGPROF") and self.code == -signal.SIGPROF


class WorkerProcess:
    """A process and what it was given to do. Raises OSError if none can be started."""

    def __init__(self, jobs: Sequence[Job], make: Callable[[], Checker]) -> None:
        start = (
            multiprocessing.get_context("fork").Process
            if _FORKS
            else multiprocessing.get_context("spawn").Process
        )
        self.connection, theirs = multiprocessing.Pipe()
        self.ready = False
        self.given: deque[int] = deque()
        """Jobs without an answer; the worker is at the first."""
        try:
            self._process = start(target=_serve, args=(theirs, os.getcwd(), jobs, make), daemon=True)
            with _interrupts_held(), _strangers_left():
                self._process.start()
        except OSError:
            self.connection.close()
            raise
        finally:
            theirs.close()

    def give(self, indices: Sequence[int]) -> None:
        """Let it check these jobs after those it has."""
        self.given.extend(indices)
        # Whether it still lives is found out by whoever waits for its answers.
        with contextlib.suppress(OSError):
            self.connection.send(list(indices))

    def answers(self) -> Iterator[tuple[int, Checked]]:
        """What it has answered: at least one message is waited for. Raises Ended."""
        while True:
            try:
                answer: tuple[int, Checked] | None = self.connection.recv()
            except (EOFError, OSError):
                raise self._ended() from None
            except Exception as error:
                self.close()
                raise Ended(f"what it found cannot be read: {type(error).__name__}: {error}", None) from error
            if answer is None:
                self.ready = True
            else:
                self.given.popleft()
                yield answer
            with contextlib.suppress(OSError):
                if self.connection.poll():
                    continue
            return

    def close(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()
        self._process.join(LEAVE_SECONDS)
        self.connection.close()

    def _ended(self) -> Ended:
        self._process.join(LEAVE_SECONDS)
        code = self._process.exitcode
        self.close()
        return Ended(how_ended(code, "its worker process", SECONDS), code)


def how_ended(code: int | None, process: str, seconds: float) -> str:
    """In words how a process that reads a file has ended; `seconds` of processor time is what it was given."""
    if code is None or code >= 0:
        return f"{process} ended (exit code {code})"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    if name == "SIGPROF":
        return f"took more than {seconds:g} s of processor time"
    if name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"):
        return f"{process} crashed (signal {-code}, {name})"
    why = ", perhaps for want of memory" if name == "SIGKILL" else ""
    return f"{process} was ended from outside (signal {-code}, {name}){why}"


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl+C reaches every process of the terminal: none may hear of it before it knows what to do."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


@contextlib.contextmanager
def _strangers_left() -> Iterator[None]:
    """A process that is not forked looks for `multiprocessing` in its current folder first, and has ours.

    Raises OSError where there is no way back.
    """
    if _FORKS:
        yield
        return
    here = os.getcwd()
    os.chdir(here)
    os.chdir(sys.base_prefix)
    try:
        yield
    finally:
        os.chdir(here)


# In the worker


def _serve(pipe: Connection, here: str, jobs: Sequence[Job], make: Callable[[], Checker]) -> None:
    """The life of a worker. Does not return: it ends when `pipe` is closed at the other end."""
    try:
        parent = multiprocessing.parent_process()
        assert parent is not None
        _let_go({pipe.fileno(), parent.sentinel})
        end_with_parent(parent.join)
        _take_signals()
        os.chdir(here)
        gc.set_threshold(*COLLECT_AFTER)
        checker = make()
        pipe.send(None)
        while True:
            for index in pipe.recv():
                _limit(SECONDS)
                try:
                    pipe.send((index, checker.check(jobs[index])))
                except Exception as error:  # such as no memory to tell of having had no memory
                    path = jobs[index].path
                    trouble = Trouble(path, f"internal error {type(error).__name__}: {error}", lost=True)
                    pipe.send((index, Checked(path, lost(path, error), (trouble,))))
                _limit(0)
    finally:
        # Not by way of the interpreter's end, which would flush what the parent had not written yet.
        os._exit(1)


def _let_go(kept: set[int]) -> None:
    """Let the null device take the place of all that was inherited, so that no reader of the parent's waits for us.

    Nothing is closed: objects that were inherited, too, close their number once more, whatever it stands for by then.
    """
    null = os.open(os.devnull, os.O_RDWR)
    inherited = {0, 1, 2}
    if _FORKS:
        with contextlib.suppress(OSError):
            inherited.update(map(int, os.listdir("/proc/self/fd")))
    for number in inherited - kept - {null}:
        with contextlib.suppress(OSError):
            os.fstat(number)
            os.dup2(null, number)
    if null > 2:
        os.close(null)


def _take_signals() -> None:
    # The parent answers an interrupt for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _limit(seconds: float) -> None:
    """Be ended by SIGPROF after so much processor time. 0: no more."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
