"""Ray's workers are killed while they work; see `crowd.py`."""

from __future__ import annotations

import sys

import pytest

from tests.fleet.crowd import crowd


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")
def test_workers_that_are_killed_cost_nothing() -> None:
    figures = crowd(300, every=40)
    assert figures["killed"] >= 3, "none was killed, so nothing was tried"
