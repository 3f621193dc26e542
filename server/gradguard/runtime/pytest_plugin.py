"""The pytest fixture `gradguard_monitor`: the test runs under the monitor and fails on what it finds.

`@pytest.mark.gradguard(level="error", light=True)` sets the lowest severity that fails (default "warning") and the
light mode. Importing this module does not import torch.

What these and all other monitors of a test run find is put together into one `.gradguard/last-run.json`, also where
pytest-xdist spreads the tests over processes.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gradguard.findings import Severity
from gradguard.runtime import collected

if TYPE_CHECKING:
    from gradguard.runtime.monitor import Monitor
    from gradguard.runtime.report import RunReport

REPORTS = pytest.StashKey[list[bytes]]()
SENT = "gradguard_reports"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "gradguard(level, light): what the gradguard_monitor fixture fails on, and whether it samples",
    )
    reports = config.stash[REPORTS] = []

    def take(report: RunReport) -> None:
        from gradguard.runtime.parts import to_bytes

        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        reports.append(to_bytes(replace(report, process=test or "outside of tests")))

    collected.take = take


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended; one that crashed has sent nothing."""
    sent = getattr(node, "workeroutput", {}).get(SENT, ())
    node.config.stash[REPORTS].extend(text.encode("utf-8", "surrogatepass") for text in sent)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Such a process sends what it found to the one that distributes the tests."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[SENT] = [each.decode("utf-8", "surrogatepass") for each in session.config.stash[REPORTS]]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    reports = config.stash.get(REPORTS, [])
    if not reports:
        return
    from gradguard.runtime.parts import from_bytes, merged
    from gradguard.runtime.report import LAST_RUN, write_last_run
    from gradguard.runtime.report_text import counted

    report = merged(map(from_bytes, reports), ("pytest", *config.invocation_params.args))
    try:
        write_last_run(report, config.rootpath)
    except OSError as error:
        terminalreporter.write_line(
            f"gradguard: cannot keep the last run: {error.filename}: {error.strerror}"
        )
        return
    watched = f"{len(reports)} monitor{'s' * (len(reports) > 1)}"
    terminalreporter.write_line(f"gradguard: {counted(report.findings)} by {watched}, kept in {LAST_RUN}")


def pytest_unconfigure() -> None:
    collected.take = None


@pytest.fixture
def gradguard_monitor(request: pytest.FixtureRequest) -> Monitor:
    """Watches the test function. Its `findings` are complete when the test function has returned.

    Raises pytest.UsageError for a level that does not exist.
    """
    # Loads torch, which most tests do without.
    from gradguard.runtime.monitor import Monitor

    mark = request.node.get_closest_marker("gradguard")
    options = mark.kwargs if mark is not None else {}
    level = options.get("level", Severity.WARNING.value)
    if level not in [s.value for s in Severity]:
        raise pytest.UsageError(
            f"gradguard marker: level {level!r} is none of error, warning, information, hint"
        )
    return Monitor(light=bool(options.get("light", False)))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    monitor: Monitor | None = pyfuncitem.funcargs.get("gradguard_monitor")  # type: ignore[assignment]
    if monitor is None:
        return (yield)
    monitor.__enter__()
    try:
        result = yield
    except BaseException as error:
        monitor.close(error)
        if monitor.findings:
            # Shown with the test's own failure.
            pyfuncitem.add_report_section("call", "gradguard", str(monitor))
        raise
    monitor.close()
    mark = pyfuncitem.get_closest_marker("gradguard")
    level = Severity((mark.kwargs if mark is not None else {}).get("level", Severity.WARNING.value))
    if any(f.severity.rank <= level.rank for f in monitor.findings):
        pytest.fail(str(monitor), pytrace=False)
    return result
