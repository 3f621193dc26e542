"""`python -m benchmarks.fleet`: what a task of a scan costs Ray and the driver, with tasks that only wait.

They wait instead of computing, so that more workers than this machine has processors can be tried, and what else it does
disturbs little. What real packages cost is measured by `make fleet`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradguard.fleet import cluster

Row = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """Of one simulation."""

    workers: int
    tasks: int
    wall: float
    driver: float

    @property
    def line(self) -> str:
        """A row of a table."""
        rate, each = self.tasks / self.wall, self.driver / self.tasks * 1000
        return f"| {self.workers} | {self.tasks:,} | {self.wall:.1f} | {rate:.1f} | {each:.1f} |"


def _opened(row: Row, packages: int) -> Iterator[Row]:
    """Packages that each fill a task."""
    for number in range(packages):
        yield {"head": f"{row['head']}/{number}", "blob": bytes(cluster.BLOCK_BYTES + 1)}


def _checked(row: Row, seconds: float) -> Row:
    time.sleep(seconds)
    return {"head": row["head"], "blob": b""}


def simulated(workers: int, tasks: int, seconds: float) -> Cost:
    """So many packages, each in a task of its own that waits so long. Raises AssertionError if one is lost."""
    sources = [{"head": str(number), "blob": b""} for number in range(tasks // 4)]
    with cluster.running(None, workers) as ray:
        warm = [{"head": "warm", "blob": b""}] * workers
        list(ray.stream(warm, partial(_opened, packages=2), partial(_checked, seconds=0.5)))
        wall, cpu = time.monotonic(), time.process_time()
        came = [
            row["head"]
            for row in ray.stream(sources, partial(_opened, packages=4), partial(_checked, seconds=seconds))
        ]
        cost = Cost(workers, len(came), time.monotonic() - wall, time.process_time() - cpu)
    assert len(set(came)) == len(came) == len(sources) * 4, "lost, or twice"
    return cost


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.25, help="that each task waits")
    options = parser.parse_args()
    print("| workers | tasks | wall, s | tasks a second | driver, CPU ms a task |")
    for workers in options.workers:
        print(simulated(workers, options.tasks, options.seconds).line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
