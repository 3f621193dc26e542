"""A folder to run in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Runner


@pytest.fixture
def gradguard(tmp_path: Path) -> Runner:
    folder = tmp_path / "project"
    folder.mkdir()
    return Runner(folder)
