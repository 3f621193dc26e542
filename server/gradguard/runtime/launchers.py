"""What a launcher says of the process that it started, in its environment: torchrun, Open MPI, srun."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rank:
    """What a launcher says of a process. here: how many ranks run on this machine. job: what no other job has."""

    number: int
    world: int
    here: int
    job: str


def rank_of(environment: Mapping[str, str]) -> Rank | None:
    """The rank that a launcher gave this process; None where none started it."""
    with contextlib.suppress(KeyError, ValueError):
        # torchrun and all that set what `init_method="env://"` reads.
        number, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        here = int(environment.get("LOCAL_WORLD_SIZE") or world)
        logs = environment.get("TORCHELASTIC_ERROR_FILE")
        # The launcher keeps the logs of each attempt in a folder of its own.
        unique = os.path.dirname(os.path.dirname(logs)) if logs else str(os.getppid())
        return Rank(
            number, world, here, f"{environment.get('MASTER_ADDR')}:{environment.get('MASTER_PORT')} {unique}"
        )
    with contextlib.suppress(KeyError, ValueError):
        # Open MPI
        return Rank(
            int(environment["OMPI_COMM_WORLD_RANK"]),
            int(environment["OMPI_COMM_WORLD_SIZE"]),
            int(environment["OMPI_COMM_WORLD_LOCAL_SIZE"]),
            environment.get("PMIX_NAMESPACE") or str(os.getppid()),
        )
    with contextlib.suppress(KeyError, ValueError, IndexError):
        # srun; a batch script itself is in no numbered step
        step = int(environment["SLURM_STEP_ID"])
        tasks = [
            int(count)
            for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", environment["SLURM_STEP_TASKS_PER_NODE"])
            for _ in range(int(times or 1))
        ]
        return Rank(
            int(environment["SLURM_PROCID"]),
            int(environment["SLURM_STEP_NUM_TASKS"]),
            tasks[int(environment["SLURM_NODEID"])],
            f"{environment['SLURM_JOB_ID']}.{step}",
        )
    return None
