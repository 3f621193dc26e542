"""A folder to run in, and a cache for its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.cli.cache import VARIABLE
from tests.cli.running import Runner


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs keep their results; made by the first of them."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def gradguard(tmp_path: Path, cache_folder: Path) -> Runner:
    folder = tmp_path / "project"
    folder.mkdir()
    return Runner(folder)
