"""What a program keeps alive and reads back: the client side of `instruments.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.oracle.pool import Died, Pool, shared_pool


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of the program, sampled whenever a pass of its body ends.

    saved_bytes: bytes of live tensors saved for backward. nodes: live autograd nodes.
    """

    line: int
    saved_bytes: tuple[int, ...]
    nodes: tuple[int, ...]

    @property
    def passes(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Measurements:
    """Counts taken in one run; `error` is empty unless the program raised.

    steps: sampled after every optimizer step (line 0). host_reads: line -> what -> how often, where `what` is an
    aten operator that reads the device, or `Tensor.cpu` and the like. without_gradient: line of the optimizer step ->
    (indices of the parameters that had no gradient or a zero one at every one of its steps, number of parameters).
    """

    loops: dict[int, Loop]
    steps: Loop
    host_reads: dict[int, dict[str, int]]
    without_gradient: dict[int, tuple[tuple[int, ...], int]]
    error: str


def measure(code: str, *, prelude: str = "", timeout: float = 60.0, pool: Pool | None = None) -> Measurements:
    """Raises RuntimeError if the process gave no answer in time."""
    result = (pool or shared_pool()).call(
        "tests.oracle.instruments:run_measured", timeout=timeout, code=code, prelude=prelude
    )
    if isinstance(result, Died):
        raise RuntimeError(f"{result.reason}: {result.detail}")
    loops = {
        line: Loop(line, tuple(b for b, _ in s), tuple(n for _, n in s))
        for line, s in result["loops"].items()
    }
    steps = Loop(0, tuple(b for b, _ in result["steps"]), tuple(n for _, n in result["steps"]))
    return Measurements(loops, steps, result["reads"], result["without"], result["error"])


def measure_file(path: Path | str, *, timeout: float = 120.0, pool: Pool | None = None) -> Measurements:
    return measure(Path(path).read_text(), timeout=timeout, pool=pool)
