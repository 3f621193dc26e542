"""How much is tried: little in every run of the tests, much in `make hostile`."""

from __future__ import annotations

import os

SHARE = int(os.environ.get("GRADGUARD_HOSTILE", "1"))
"""How many times as many trials."""
SEED = int(os.environ.get("GRADGUARD_HOSTILE_SEED", "0"))
"""Where the seeds begin."""


def seeds(count: int, offset: int = 0) -> range:
    """Seeds of a test's trials."""
    start = SEED * 100_000 + offset
    return range(start, start + count * SHARE)
