"""Worker processes end when the command that started them does, however it ends, and keep no reader of it waiting."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cli.processes import PATIENCE, alive, eventually
from tests.cli.running import RAISES, Runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

BUSY = "import torch\n" + "".join(
    f"""
def function_{number}(x, flags):
    y = x.exp()
    for flag in flags:
        if flag > {number}:
            y = y * 2 + x
        y += 1
    y.sum().backward()
"""
    for number in range(20)
)

FILES = 12

BY_HAND = """\
import os, re, sys, time
from functools import partial
from gradguard.check.settings import Settings
from gradguard.cli import pool
from gradguard.cli.worker import Checked, Checker, Job

class Waiting(Checker):
    def check(self, job):
        if job.path == "0":
            return Checked(job.path)
        print("never seen", file=sys.stderr, flush=True)
        {work}

jobs = [Job(str(number), Settings()) for number in range(9)]
for each in pool.run(jobs, partial(Waiting, None), 3):
    print("checked", each.path, flush=True)
    {end}
"""
WORK = {
    "waits": "time.sleep(3600)",
    "counts": "\n        while True: pass",
    "holds the interpreter": 're.match(r"(a+)+$", "a" * 60 + "b")',
    "is stopped": "os.kill(os.getpid(), 19)",
}
END = {
    "killed": "os.kill(os.getpid(), 9)",
    "crashes": "os.kill(os.getpid(), 11)",
    "leaves": "os._exit(3)",
    "raises": "raise ZeroDivisionError",
    "exits": "sys.exit(4)",
    "is interrupted": "os.kill(os.getpid(), 2)",
    "out of memory": "raise MemoryError",
}


@pytest.fixture
def started(gradguard: Runner) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes to be ended with all theirs after the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        for number in alive(session=process.pid):
            os.kill(number, signal.SIGKILL)
        process.communicate()


def start(gradguard: Runner, *words: str) -> subprocess.Popen[bytes]:
    """A process in a session of its own, whose output is read to its end by `communicate`."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=gradguard.folder,
        env=gradguard.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=hear_signals,
    )


def hear_signals() -> None:
    """Whatever the tests themselves were told to ignore, as by nohup."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        signal.signal(signal.Signals[name], signal.SIG_DFL)


def check(gradguard: Runner, *options: str, files: int = 30) -> subprocess.Popen[bytes]:
    gradguard.write(**{f"busy{number}": BUSY + RAISES for number in range(files)})
    return start(gradguard, "-m", "gradguard", "check", "--no-cache", "--jobs", "3", *options)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("seed", range(4))
def test_workers_end_with_the_command(
    name: str, seed: int, gradguard: Runner, started: list[subprocess.Popen[bytes]]
) -> None:
    process = check(gradguard)
    started.append(process)
    # From the start of the command to the midst of its work.
    time.sleep(random.Random(f"{name} {seed}").uniform(0.0, 1.0))
    process.send_signal(signal.Signals[name])
    # Both pipes come to their end: nobody holds them any more.
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (-signal.Signals[name], b"", b"")
    assert eventually(lambda: not alive(session=process.pid))


@pytest.mark.parametrize(
    ("working", "ending"),
    [
        *((working, "killed") for working in WORK),
        *(("waits", ending) for ending in END if ending != "killed"),
    ],
)
def test_workers_end_whatever_they_do(
    working: str, ending: str, gradguard: Runner, started: list[subprocess.Popen[bytes]]
) -> None:
    process = start(gradguard, "-c", BY_HAND.format(work=WORK[working], end=END[ending]))
    started.append(process)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode
    assert out == b"checked 0\n"
    assert b"never seen" not in err
    assert eventually(lambda: not alive(session=process.pid))


@pytest.mark.parametrize("whole_group", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_an_interrupt_ends_all_at_once_and_says_one_line(
    seed: int, whole_group: bool, gradguard: Runner, started: list[subprocess.Popen[bytes]]
) -> None:
    process = check(gradguard)
    started.append(process)
    assert eventually(lambda: len(alive(session=process.pid)) > 1)
    time.sleep(random.Random(seed).uniform(0.0, 0.3))
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, b"", b"gradguard: interrupted\n")
    assert eventually(lambda: not alive(session=process.pid))


@pytest.mark.parametrize("seed", range(2))
def test_a_worker_that_is_killed_from_outside_costs_nothing_where_the_next_is_not(
    seed: int, gradguard: Runner, started: list[subprocess.Popen[bytes]]
) -> None:
    process = check(gradguard, "--format", "json", files=FILES)
    started.append(process)
    assert eventually(lambda: len(alive(parent=process.pid)) == 3)
    time.sleep(random.Random(seed).uniform(0.0, 1.0))
    os.kill(alive(parent=process.pid).pop(), signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE * 5)
    # One that was at work had its file tried again, so that everything is found.
    assert (process.returncode, err) == (1, b"")
    found = [(each["file"], each["line"]) for each in json.loads(out)["findings"]]
    of_one = [line for file, line in found if file == "busy7.py"]
    assert of_one
    assert sorted(found) == sorted((f"busy{number}.py", line) for number in range(FILES) for line in of_one)
