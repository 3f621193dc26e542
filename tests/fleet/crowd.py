"""A scan of very many tiny packages on the real Ray, whose workers are killed meanwhile: nothing is lost, nothing comes twice.

`make fleet` runs it with 20,000 packages (PACKAGES says how many), `make test` with a few hundred.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

from gradguard.fleet import cluster, scan
from gradguard.fleet.model import Limits, Options
from gradguard.fleet.scan import Came, Head
from gradguard.fleet.sources import sources
from gradguard.fleet.store import Store
from gradguard.fleet.work import Work, version

MISTAKE = "import torch\n\nx = torch.rand({size}, requires_grad=True)\ny = torch.sigmoid(x)\ny += 1\ny.sum().backward()\n"
"""Torch raises at the last line. Another size makes another text, so that no two packages share a result."""


def made(folder: Path, count: int) -> None:
    """So many wheels with one mistake each."""
    folder.mkdir()
    for number in range(count):
        with zipfile.ZipFile(folder / f"p{number}-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr(f"p{number}.py", MISTAKE.format(size=number + 1))


def workers(driver: int) -> list[int]:
    """Processes of Ray that run tasks for a driver of this machine."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                names[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, ValueError, IndexError):
                continue

    def ours(process: int) -> bool:
        while process > 1:
            process = parents.get(process, 0)
            if process == driver:
                return True
        return False

    return [process for process, name in names.items() if name.startswith("ray::") and ours(process)]


def _cpu() -> float:
    """Processor time of this process, and of all below it that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Killer:
    """Kills a worker, whatever it does, each time that so many packages are done."""

    def __init__(self, every: int, seed: int) -> None:
        self._every = every
        self._choose = random.Random(seed)
        self._done = 0
        self.killed = 0

    def __call__(self, came: Came, head: Head) -> None:
        self._done += 1
        if not self._every or self._done % self._every:
            return
        found = [each for each in workers(os.getpid()) if _runs_a_task(each)]
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._choose.choice(found), signal.SIGKILL)
                self.killed += 1


def _runs_a_task(process: int) -> bool:
    """Not an idle worker, which has no task to lose, nor Ray's own helpers, without which a machine is gone as a whole."""
    try:
        return b"Map(" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def crowd(count: int, every: int, jobs: int = 2, seed: int = 0) -> dict[str, float]:
    """Scan so many packages; figures of what came. Raises AssertionError."""
    with tempfile.TemporaryDirectory(prefix="gradguard-crowd-") as temporary:
        top = Path(temporary)
        made(top / "wheels", count)
        asked = sources([str(path) for path in sorted((top / "wheels").iterdir())])
        work = Work(version(), Options(), Limits(), Store(str(top / "store")))
        killer = Killer(every, seed)
        cpu = _cpu()
        with cluster.running(None, jobs) as ray:
            began = time.monotonic()
            came = scan.run(asked, work, ray, killer)
            seconds = time.monotonic() - began
        names = Counter(head["package"] for head in came.heads.values())
        assert names == Counter(f"p{number}" for number in range(count)), "lost, or twice"
        wrong = [head for head in came.heads.values() if head.get("counts") != {"error GG101": 1}]
        assert not wrong, wrong[:3]
        results = sum(1 for path in (top / "store" / "results").rglob("*") if path.is_file())
        assert results == count, f"{results} results"
        drafts = list(top.rglob("*.tmp"))
        return {
            "packages": count,
            "seconds": round(seconds, 1),
            "cpu": round(_cpu() - cpu, 1),
            "killed": killer.killed,
            "drafts": len(drafts),
            "jobs": jobs,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=500, help="packages between two kills; 0 for none")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print(crowd(given.packages, given.every, given.jobs))


if __name__ == "__main__":
    sys.exit(main())
