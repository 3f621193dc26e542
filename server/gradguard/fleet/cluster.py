"""Ray Data, seen from the rest of the scan: where tasks run, how rows go through them, and how tables are written.

Scheduling, the retries of lost workers and the movement of data are Ray's. What is set here is how much goes into one
task, and that the failure of one costs nothing but itself: `scan` finds out what is missing and asks for it again.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradguard.cli.refused import Refused
from gradguard.fleet.child import HOME

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]

RETRIES = 3
"""Of a task whose worker was lost."""
BLOCKS_PER_CPU = 8
"""Tasks of a scan for each processor, at least: fewer, and one that takes long ends alone."""
SOURCES_PER_TASK = 50
"""Small ones are opened together, as a task costs Ray some milliseconds."""
BLOCK_BYTES = 250_000
"""Of packed packages that go into one task of checking, about 25,000 lines; one that is larger has its own."""
BLOCK_CPUS = 100
"""With each so many processors tasks are larger, as the driver can hand out only some dozens a second."""
MOST_BLOCK_BYTES = 2_000_000
ROWS_PER_FILE = 2_000
"""Packages whose rows go into one file of a table."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray that is running."""

    cpus: int

    def stream(
        self,
        rows: Sequence[Row],
        first: Callable[[Row], Iterable[Row]],
        then: Callable[[Row], Row],
        *,
        alone: bool = False,
    ) -> Iterator[Row]:
        """What `then` makes of each row that `first` makes of these; in no order, and without what was lost.

        alone: each row in a task of its own.
        """
        import ray.data

        most = max(1, -(-len(rows) // SOURCES_PER_TASK))
        blocks = len(rows) if alone else min(len(rows), max(most, self.cpus * BLOCKS_PER_CPU))
        data = ray.data.from_items(list(rows), override_num_blocks=max(1, blocks))
        # Stages with different needs are not run as one task: the packages of a large source are spread.
        with warnings.catch_warnings():
            # The version of Ray that is pinned has no other way to say so, and without it tries for ever.
            warnings.simplefilter("ignore")
            opened = data.flat_map(first, num_cpus=0.5, max_retries=RETRIES)
            checked = opened.map(then, num_cpus=1, max_retries=RETRIES)
        yield from checked.iter_rows()

    def tables(
        self,
        rows: Sequence[Row],
        load: Callable[[Row], Row],
        tables: Mapping[str, Callable[[dict[str, Any]], pyarrow.Table]],
        filesystem: tuple[Any, str],
        partitions: Mapping[str, Sequence[str]],
    ) -> None:
        """Write, below a folder, the tables that functions make of batches of loaded rows."""
        import ray.data
        from pyarrow.fs import FSSpecHandler, PyFileSystem

        if not rows:
            return
        system, top = filesystem
        writer = PyFileSystem(FSSpecHandler(system))
        blocks = max(1, -(-len(rows) // ROWS_PER_FILE))
        loaded = ray.data.from_items(list(rows), override_num_blocks=blocks).map(load).materialize()
        for name, make in tables.items():
            made = loaded.map_batches(make, batch_size=None, batch_format="numpy")
            made.write_parquet(
                f"{top}/{name}", filesystem=writer, partition_cols=list(partitions.get(name, ())) or None
            )


@contextmanager
def running(address: str | None, cpus: int | None) -> Iterator[Cluster]:
    """Ray on this machine, or the one at an address, for as long as the block runs. Raises Refused."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    here = os.getcwd()
    # Ray has its workers look for modules in the folder that it is started in, which may be a stranger's.
    os.chdir(HOME)
    try:
        import ray
        import ray.data

        given: dict[str, Any] = (
            {"address": address} if address else {"num_cpus": cpus, "include_dashboard": False}
        )
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=True, **given)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            said = " ".join(str(error).split())[:300]
            where = f"--address {address}" if address else "Ray on this machine"
            raise Refused(f"{where}: Ray cannot be started or reached: {said}") from None
        try:
            there = max(1, int(ray.cluster_resources().get("CPU", 1)))
            _set_up(min(BLOCK_BYTES * (1 + there // BLOCK_CPUS), MOST_BLOCK_BYTES))
            yield Cluster(there)
        finally:
            ray.shutdown()
    finally:
        os.chdir(here)


def _set_up(block: int) -> None:
    import ray.data

    for name in ("ray", "ray.data"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
        for handler in list(logger.handlers):
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
                logger.removeHandler(handler)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.max_errored_blocks = -1
    context.target_max_block_size = block
    context.execution_options.preserve_order = False
