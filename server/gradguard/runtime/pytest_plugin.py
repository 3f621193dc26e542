"""The pytest fixture `gradguard_monitor`: the test runs under the monitor and fails on what it finds.

`@pytest.mark.gradguard(level="error", light=True)` sets the lowest severity that fails (default "warning") and the
light mode. Importing this module does not import torch.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from gradguard.findings import Severity

if TYPE_CHECKING:
    from gradguard.runtime.monitor import Monitor


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "gradguard(level, light): what the gradguard_monitor fixture fails on, and whether it samples",
    )


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
