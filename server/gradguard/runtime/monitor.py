"""`with gradguard.monitor() as m:` for notebooks, tests and programs that start themselves."""

from __future__ import annotations

import sys
from types import TracebackType

from gradguard.findings import Finding, Limit, Severity
from gradguard.runtime import collected
from gradguard.runtime.report import RunReport
from gradguard.runtime.report_text import text_report
from gradguard.runtime.watched_run import WatchedRun


class Monitor:
    """Watches the torch operations of its block. `findings` and `limits` are filled when the block ends.

    Exceptions of the block pass through unchanged. Errors that it catches itself are reported as well; where a debugger
    or coverage traces lines, that holds for errors of backward only.
    """

    def __init__(self, light: bool = False) -> None:
        self._run = WatchedRun(light)
        self.findings: tuple[Finding, ...] = ()
        self.limits: tuple[Limit, ...] = ()
        self.report: RunReport | None = None

    def __enter__(self) -> Monitor:
        """Raises RuntimeError if another monitor is on."""
        self._run.start(sys._getframe(1), follow=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Ends the watching; `error` is what ended the watched code. May be called again without effect."""
        if self.report is None:
            self._run.stop(error)
            self.findings, self.limits = self._run.results()
            self.report = RunReport.of(self._run, command=())
            if collected.take is not None:
                collected.take(self.report)

    def worst(self) -> Severity | None:
        """The loudest severity among the findings, None if there is none."""
        return min((f.severity for f in self.findings), key=lambda s: s.rank, default=None)

    def __str__(self) -> str:
        return text_report(self.report) if self.report is not None else "gradguard monitor: still watching"


def monitor(light: bool = False) -> Monitor:
    """A context manager that watches its block; `light` watches only a sample of the passes of a loop."""
    return Monitor(light)
