"""Processes that report together: the ranks of a job, and what a watched program starts.

Each leaves its own report in a folder of the job below `.gradguard`. Who started them makes one report of all; where that
was a launcher which nobody watches, such as torchrun, the last rank to end on a machine does.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from gradguard.disk.folder import Folder
from gradguard.disk.reading import Unreadable
from gradguard.runtime.launchers import Rank
from gradguard.runtime.parts import from_bytes, merged, to_bytes
from gradguard.runtime.report import LAST_RUN, RunReport, own_folder

FOLDER = "GRADGUARD_RANKS"
"""Environment variable by which a watched program tells what it starts where to leave its report."""

PREFIX = "ranks-"
MOST_BYTES = 64_000_000
# Who comes first takes the job of telling what all have found.
TOLD = "told"
HOST = socket.gethostname()


class DefaultGroup:
    """Knows the rank that `init_process_group` gave this process, also when the group is gone."""

    def __init__(self) -> None:
        self.rank: int | None = None
        self._module: Any = None
        self._original: Any = None

    def install(self) -> None:
        try:
            import torch.distributed.distributed_c10d as module

            original = module._update_default_pg
        except (ImportError, AttributeError):
            return

        def update(group: Any) -> None:
            original(group)
            with contextlib.suppress(Exception):
                if group is not None and group.rank() >= 0:
                    self.rank = group.rank()

        self._module, self._original = module, original
        module._update_default_pg = update

    def remove(self) -> None:
        if self._module is not None:
            self._module._update_default_pg = self._original
            self._module = None


class Member:
    """One process of a run that may have several.

    root: the folder that has `.gradguard`. rank: what a launcher says. leads: whether it started the others.
    """

    def __init__(self, root: Path, folder: str | None, rank: Rank | None) -> None:
        """`folder` is where reports are left, as its starter says; without one a rank of a launcher knows it itself."""
        self.rank = rank
        self.started = folder is not None
        self.leads = folder is None and rank is None
        self.root = root
        if folder is not None:
            # Below the folder in which the first process was started.
            self.root = Path(folder).parent.parent
            self.name = os.path.basename(folder)
        elif rank is not None:
            self.name = PREFIX + sha256(f"{HOST} {rank.job}".encode()).hexdigest()[:16]
        else:
            self.name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self.joined = False
        kind = f"rank-{rank.number}" if rank is not None else "process"
        self._me = f"{kind}-{os.getpid()}-{secrets.token_hex(4)}"

    @property
    def folder(self) -> str:
        """Where the others leave their reports; made at the first use."""
        self.join()
        return str(self.root / LAST_RUN.parent / self.name)

    def join(self) -> None:
        """Says that this process is there. Raises OSError."""
        if self.joined:
            return
        with self._open(make=True) as here:
            here.write(f"{self._me}.on", json.dumps([HOST, os.getpid()]).encode())
        self.joined = True

    def so_far(self, report: RunReport) -> RunReport:
        """Leaves the report of this process and gives that of all, as far as they have told. Raises OSError."""
        if not self.joined:
            return report
        with self._open() as here:
            here.write(f"{self._me}.json", to_bytes(report))
            return self._merged(here, report)

    def end(self, report: RunReport) -> RunReport | None:
        """Leaves the report of this process; gives that of all if it is this process that has to tell it."""
        if not self.joined:
            return report
        with self._open() as here:
            here.write(f"{self._me}.json", to_bytes(report))
            if not self.leads and (self.started or self._waits(here) or not here.create(TOLD)):
                return None
            told = self._merged(here, report)
            self._clear(here)
        with Folder.open(self.root) as root, root.below([LAST_RUN.parts[0]]) as own:
            own.remove_empty(self.name)
            self._sweep(own)
        return told

    def _open(self, make: bool = False) -> Folder:
        with Folder.open(self.root) as root:
            if not make:
                return root.below([LAST_RUN.parts[0], self.name])
            with own_folder(root) as own:
                return own.below([self.name], make=True)

    def _merged(self, here: Folder, own: RunReport) -> RunReport:
        parts = []
        for name in sorted(here.names()):
            if name.endswith(".json"):
                with contextlib.suppress(Unreadable, ValueError, KeyError, TypeError):
                    parts.append(from_bytes(here.read(name, MOST_BYTES)))
        # A launcher that runs no operator itself is none of its ranks.
        if any(part.rank is not None for part in parts):
            parts = [part for part in parts if part.rank is not None or part.costs.operators or part.findings]
        told = {part.rank for part in parts}
        names = set(here.names())
        came = {int(name.split("-")[1]) for name in names if name.startswith("rank-")}
        world = self.rank.world if self.rank is not None else max(came, default=-1) + 1
        missing = [rank for rank in range(world) if rank not in told]
        silent = sum(
            name.startswith("process-") and name.endswith(".on") and f"{name[:-3]}.json" not in names
            for name in names
        )
        if len(parts) == 1 and parts[0].rank is None and not missing and not silent:
            return replace(parts[0], command=own.command)
        return merged(parts, own.command, missing, silent)

    def _waits(self, here: Folder) -> bool:
        """Whether ranks of this machine have yet to come or to end."""
        there = [name for name in here.names() if name.endswith(".on")]
        if self.rank is not None and sum(name.startswith("rank-") for name in there) < self.rank.here:
            return True
        return any(not _ended(here, name) and _lives(here, name) for name in there)

    def _clear(self, here: Folder) -> None:
        for name in list(here.names()):
            here.remove(name)

    def _sweep(self, own: Folder) -> None:
        """Removes what jobs left that were killed whole."""
        for name in [name for name in own.names() if name.startswith(PREFIX)]:
            with contextlib.suppress(OSError), own.below([name]) as old:
                there = [each for each in old.names() if each.endswith(".on")]
                if there and not any(_lives(old, each) for each in there):
                    self._clear(old)
                    own.remove_empty(name)


def _ended(here: Folder, name: str) -> bool:
    """Whether what a process left is its last word, and not what it wrote while it ran."""
    try:
        return from_bytes(here.read(name.removesuffix(".on") + ".json", MOST_BYTES)).ended
    except (Unreadable, ValueError, KeyError, TypeError):
        return False


def _lives(here: Folder, name: str) -> bool:
    """Whether a process that came is there still; of another machine nobody knows, and it counts as alive."""
    try:
        host, pid = json.loads(here.read(name))
        if host != HOST or os.name == "nt":
            return True
        os.kill(int(pid), 0)
    except (ProcessLookupError, Unreadable, ValueError, TypeError):
        return False
    except OSError:
        return True
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as stat:
        # One that nobody has asked for its exit code yet
        return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return True


def with_rank(report: RunReport, member: Member, group: DefaultGroup, process: str) -> RunReport:
    """A report that says whose it is."""
    rank = group.rank if group.rank is not None else member.rank.number if member.rank is not None else None
    return replace(report, rank=rank, process=process)


def siblings() -> Iterator[Any]:
    """The processes that `multiprocessing` has started and Python waits for at its end."""
    import multiprocessing

    return (process for process in multiprocessing.active_children() if not process.daemon)
