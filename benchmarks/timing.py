"""Run a command and say what it cost: wall time, CPU time of it and its children, and the largest memory."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter


@dataclass(frozen=True)
class Cost:
    """seconds of wall and CPU time, MiB of the largest process. `code` is None when the time was up."""

    code: int | None
    wall: float
    cpu: float
    memory: float
    out: str = ""
    err: str = ""


def run(
    command: Sequence[str], *, cwd: Path | None = None, limit: float = 600, env: dict[str, str] | None = None
) -> Cost:
    """Run a command to its end, or until `limit` seconds are over, and measure it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **(env or {})}, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        late = threading.Event()
        spent = 0.0

        def stop() -> None:
            nonlocal spent
            # What killed children used is lost to wait4, because nobody waited for them.
            spent = _group_cpu(process.pid)
            late.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        return Cost(
            None if late.is_set() else process.returncode,
            wall,
            max(spent, usage.ru_utime + usage.ru_stime),
            usage.ru_maxrss / 1024,
            _text(out),
            _text(err),
        )


def median(command: Sequence[str], times: int, **how: object) -> Cost:
    """The run of the median CPU time among several."""
    runs = sorted((run(command, **how) for _ in range(times)), key=lambda cost: cost.cpu)  # type: ignore[arg-type]
    return runs[len(runs) // 2]


def spread(costs: Sequence[float]) -> tuple[float, float]:
    """Median and largest of some figures."""
    return statistics.median(costs), max(costs)


def _group_cpu(group: int) -> float:
    """CPU seconds of the living processes of a process group."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    return file.read().decode(errors="replace")  # type: ignore[attr-defined, no-any-return]
