"""A program whose stdin ends, as its parent has ended, takes with it all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.processes import PATIENCE, alive, eventually

from gradguard.runtime import lifeline

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

PROGRAM = """\
import os, re, sys, time
from gradguard.runtime.lifeline import end_with_stdin

end_with_stdin()
assert sys.stdin.read() == ""
if not os.fork():
    time.sleep(3600)
print("runs", flush=True)
{work}
"""
ALONE = PROGRAM.replace("os.fork()", "1")
WORK = {
    "waits": "time.sleep(3600)",
    "counts": "while True: pass",
    "holds the interpreter": 're.match(r"(a+)+$", "a" * 60 + "b")',
    "ends": "",
    "crashes": "os.kill(os.getpid(), 11)",
}


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A leader of processes that has said that its program runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": lifeline.__file__.partition("gradguard")[0]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"runs\n"
        yield process
    finally:
        for number in alive(session=process.pid):
            os.kill(number, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("working", ["waits", "counts", "holds the interpreter"])
def test_a_program_ends_with_stdin(working: str) -> None:
    with running(PROGRAM.format(work=WORK[working])) as process:
        assert len(alive(session=process.pid)) == 3
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)
        assert eventually(lambda: not alive(session=process.pid))


@pytest.mark.parametrize("working", ["ends", "crashes"])
def test_what_a_program_leaves_ends_with_it(working: str) -> None:
    with running(PROGRAM.format(work=WORK[working])) as process:
        process.wait(PATIENCE)
        assert eventually(lambda: not alive(session=process.pid))


def test_a_program_ends_with_the_process_that_would_end_it() -> None:
    with running(ALONE.format(work=WORK["holds the interpreter"])) as process:
        process.kill()
        assert eventually(lambda: not alive(session=process.pid))
