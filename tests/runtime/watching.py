"""Runs a program under the monitor inside a worker of the oracle and sends home what it reported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.pool import Died, Pool, shared_pool

RUN = "tests.runtime.watching:run_watched"


@dataclass(frozen=True, slots=True)
class Watched:
    """findings: (line, code, severity, message, related lines). outcome: as the plain run would tell it."""

    findings: tuple[tuple[int, str, str, str, tuple[int, ...]], ...]
    error_type: str
    error: str
    line: int | None
    gradients: list[tuple[str, Any]]
    stdout: str
    limits: tuple[str, ...]
    troubles: tuple[str, ...]
    final: dict[str, Any]

    @property
    def lines(self) -> set[tuple[int, str]]:
        return {(line, code) for line, code, *_ in self.findings}


def watch(
    code: str, *, prelude: str = "", light: bool = False, timeout: float = 60.0, pool: Pool | None = None
) -> Watched | Died:
    return (pool or shared_pool()).call(RUN, timeout=timeout, code=code, prelude=prelude, light=light)


def watch_file(path: Path, **options: Any) -> Watched | Died:
    return watch(path.read_text(), **options)


def run_watched(code: str, prelude: str, light: bool, watched: bool = True) -> Watched:
    """Runs in the worker. With `watched` off the same program runs plainly, for comparison."""
    import torch
    from tests.oracle.programs import Gradients, as_array, execute, gradients_recorded

    from gradguard.runtime.watched_run import WatchedRun

    gradients = Gradients()
    runs: list[WatchedRun] = []

    @contextmanager
    def inside() -> Iterator[None]:
        if not watched:
            with gradients_recorded(gradients):
                yield
            return
        run = WatchedRun(light, (sys.argv[0],))
        run.frames.ignore(str(Path(__file__).parents[1]))
        runs.append(run)
        run.start(None)
        try:
            with gradients_recorded(gradients):
                yield
        except BaseException as error:
            run.stop(error)
            raise
        run.stop()

    ran = execute(code, prelude, inside=inside)
    findings, limits = runs[0].results() if runs else ((), ())
    final = {
        name: as_array(value) for name, value in ran.namespace.items() if isinstance(value, torch.Tensor)
    }
    return Watched(
        tuple(
            (f.span.line, f.code, f.severity.value, f.message, tuple(r.span.line for r in f.related))
            for f in findings
            if f.path == sys.argv[0]
        ),
        ran.raised.type if ran.raised else "",
        ran.raised.text if ran.raised else "",
        ran.raised.line if ran.raised else None,
        gradients.found,
        ran.stdout,
        tuple(limit.message for limit in limits),
        tuple(runs[0].troubles) if runs else (),
        final,
    )
