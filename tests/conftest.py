"""What runs in the tests keeps its cache in a folder of the tests, never in that of the user. No test is timed."""

from __future__ import annotations

import os
import shutil
import tempfile

import hypothesis
import pytest

from gradguard.cli.cache import VARIABLE

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

MADE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Workers of a test run inherit the folder of the process that started them."""
    if not hasattr(config, "workerinput"):
        config.stash[MADE] = os.environ[VARIABLE] = tempfile.mkdtemp(prefix="gradguard-cache-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if MADE in config.stash:
        shutil.rmtree(config.stash[MADE], ignore_errors=True)
