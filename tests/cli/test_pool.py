"""Several processes give what one gives, and one that is lost costs its file."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from gradguard.check.settings import Settings
from gradguard.cli import pool, process
from gradguard.cli.result import Trouble
from gradguard.cli.worker import Checked, Checker, Job
from tests.cli.processes import alive

JOBS = [Job(f"/x/{number}.py", Settings(), data=b"") for number in range(50)]
PATHS = [job.path for job in JOBS]

forking = pytest.mark.skipif(
    sys.platform != "linux", reason="what is patched here reaches forked workers only"
)


class Naming(Checker):
    """Answers at once. `/x/30.py` is the file that something happens at, in a worker."""

    def __init__(self, note: Path | None = None) -> None:
        super().__init__(None)
        self.parent = os.getpid()
        self.note = note

    def check(self, job: Job) -> Checked:
        if job.path == PATHS[30] and os.getpid() != self.parent:
            if self.note is not None:
                with self.note.open("a") as file:
                    print(os.getpid(), len(alive(parent=os.getppid())), file=file)
            self.happens()
        return Checked(job.path)

    def happens(self) -> None:
        raise NotImplementedError


class Quiet(Naming):
    def happens(self) -> None:
        return


class Exiting(Naming):
    def happens(self) -> None:
        os._exit(9)


class Crashing(Naming):
    def happens(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Killed(Naming):
    def happens(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Terminated(Naming):
    def happens(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class KilledOnce(Naming):
    def happens(self) -> None:
        assert self.note is not None
        if len(self.note.read_text().splitlines()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Hanging(Naming):
    def happens(self) -> None:
        while True:
            pass


class Matching(Naming):
    """Hangs where no other thread can run."""

    def happens(self) -> None:
        re.match(r"(a+)+$", "a" * 60 + "b")


class OutOfMemory(Naming):
    def happens(self) -> None:
        raise MemoryError


class Holding(Naming):
    """Tells what it holds open besides the null device."""

    def check(self, job: Job) -> Checked:
        held = []
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the listing itself is closed again
                held.append(os.readlink(f"/proc/self/fd/{number}"))
        return Checked(job.path, troubles=tuple(Trouble(name, "") for name in held if name != os.devnull))


class KillingEveryThird(Checker):
    def check(self, job: Job) -> Checked:
        if int(Path(job.path).stem) % 3 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return Checked(job.path)


class Failing(Checker):
    def _check(self, job: Job) -> Checked:
        raise ZeroDivisionError("at work")


class Unreadable(Trouble):
    """Can be sent, and not be received."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


class Garbled(Checker):
    def check(self, job: Job) -> Checked:
        bad = Unreadable(job.path, "") if job.path == PATHS[30] else lambda: None
        return Checked(job.path, troubles=(bad,) if job.path in PATHS[30:32] else ())  # type: ignore[arg-type]


def made(checker: type[Naming], note: Path | None = None) -> Any:
    """What makes this checker. It is made now, in the test's own process, to know which that is."""
    here = checker(note)
    return lambda: here


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_come_in_the_order_of_the_jobs(processes: int) -> None:
    done = pool.run(JOBS, partial(Quiet), processes)
    assert [each.path for each in done] == PATHS


@forking
@pytest.mark.parametrize(
    ("checker", "said"),
    [
        (Exiting, r"its worker process ended \(exit code 9\), also when nothing else ran"),
        (Crashing, r"its worker process crashed \(signal 11, SIGSEGV\), also when nothing else ran"),
        (Killed, r"ended from outside \(signal 9, SIGKILL\), perhaps for want of memory, also when"),
        (Terminated, r"ended from outside \(signal 15, SIGTERM\), also when nothing else ran"),
        (OutOfMemory, r"internal error MemoryError"),
    ],
)
@pytest.mark.parametrize("processes", [2, 5])
def test_a_lost_worker_costs_its_file(checker: type[Naming], said: str, processes: int) -> None:
    done = list(pool.run(JOBS, made(checker), processes))
    assert [each.path for each in done] == PATHS
    assert [each.path for each in done if each.troubles] == [PATHS[30]]
    assert re.search(said, str(done[30].troubles[0]))


@forking
def test_a_file_is_tried_once_more_when_nothing_else_runs(tmp_path: Path) -> None:
    others = len(alive(parent=os.getpid()))  # what other tests left running, such as what judges programs
    done = list(pool.run(JOBS, made(KilledOnce, tmp_path / "note"), 3))
    assert [each.path for each in done] == PATHS
    assert not any(each.troubles for each in done)
    first, second = (line.split() for line in (tmp_path / "note").read_text().splitlines())
    assert first[0] != second[0]
    assert (int(first[1]) - others, int(second[1]) - others) == (3, 1)


@forking
@pytest.mark.parametrize("checker", [Hanging, Matching])
def test_a_file_that_takes_far_too_long_is_given_up_at_once(
    checker: type[Naming], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SECONDS", 0.2)
    done = list(pool.run(JOBS, made(checker, tmp_path / "note"), 2))
    assert [each.path for each in done if each.troubles] == [PATHS[30]]
    assert (
        str(done[30].troubles[0])
        == "/x/30.py: took more than 0.2 s of processor time and was given up; `exclude` leaves the file out"
    )
    assert len((tmp_path / "note").read_text().splitlines()) == 1


def test_many_lost_workers_cost_their_files() -> None:
    done = list(pool.run(JOBS, partial(KillingEveryThird, None), 2))
    assert [each.path for each in done] == PATHS
    assert [each.path for each in done if each.troubles] == PATHS[::3]


@forking
def test_a_worker_that_dies_with_half_an_answer_written(monkeypatch: pytest.MonkeyPatch) -> None:
    send, parent = Connection._send, os.getpid()  # type: ignore[attr-defined]

    def half(self: Connection, data: Any, *more: Any) -> None:
        if b"/x/30.py" in bytes(data) and os.getpid() != parent:
            send(self, bytes(data)[:10], *more)
            os.kill(os.getpid(), signal.SIGKILL)
        send(self, data, *more)

    monkeypatch.setattr(Connection, "_send", half)
    done = list(pool.run(JOBS, made(Quiet), 3))
    assert [each.path for each in done] == PATHS
    assert [each.path for each in done if each.troubles] == [PATHS[30]]


def test_an_answer_that_cannot_be_sent_or_read_costs_its_file() -> None:
    done = list(pool.run(JOBS, partial(Garbled, None), 2))
    assert [each.path for each in done if each.troubles] == PATHS[30:32]
    assert "cannot be read: ValueError" in str(done[30].troubles[0])
    assert "internal error" in str(done[31].troubles[0])


@forking
@pytest.mark.parametrize("possible", [0, 1])
def test_where_no_more_processes_can_be_had_the_work_is_done_all_the_same(
    possible: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, asked = os.fork, 0

    def scarce() -> int:
        nonlocal asked
        asked += 1
        if asked > possible:
            raise BlockingIOError("Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", scarce)
    done = list(pool.run(JOBS, made(Killed), 3))
    assert [each.path for each in done] == PATHS
    assert asked > possible
    # Where nothing but this process was left, the file was checked in it.
    assert [str(each.troubles[0]) for each in done if each.troubles] == [
        "/x/30.py: its worker process was ended from outside (signal 9, SIGKILL), perhaps for want of memory, "
        "and no second one could be started; `exclude` leaves the file out"
    ][:possible]


@forking
def test_where_workers_never_come_to_work_this_process_does_it() -> None:
    parent = os.getpid()

    def make() -> Checker:
        if os.getpid() != parent:
            raise RuntimeError("can't start new thread")
        return Quiet()

    assert [each.path for each in pool.run(JOBS, make, 3)] == PATHS


@forking
def test_who_stops_asking_ends_all_workers() -> None:
    before = alive(parent=os.getpid())
    results = pool.run(JOBS, made(Hanging), 2)
    assert next(results).path == PATHS[0]
    assert len(alive(parent=os.getpid()) - before) == 2
    results.close()  # type: ignore[attr-defined]
    assert alive(parent=os.getpid()) <= before


@forking
def test_a_worker_holds_nothing_open_of_what_its_parent_holds(tmp_path: Path) -> None:
    read, write = os.pipe()
    with (tmp_path / "file").open("w"):
        done = list(pool.run(JOBS, made(Holding), 3))
    os.close(read)
    os.close(write)
    # The pipe to its parent, and the one that tells of its parent's end.
    for each in done:
        assert sorted(held.path.partition(":")[0] for held in each.troubles) == ["pipe", "socket"]


def test_a_fault_in_one_file_does_not_end_the_run() -> None:
    done = list(pool.run(JOBS, partial(Failing, None), 2))
    assert len(done) == 50
    assert "internal error ZeroDivisionError: at work" in str(done[0].troubles[0])
    assert "Traceback" in done[0].report.crash
