"""Safe fixes and in-place forms of programs grown at random keep what the programs compute. `make fuzz` asks for many more."""

from __future__ import annotations

from tests.fixes.outcomes import Outcome, Rewrite
from tests.oracle import shared_pool

SEEDS = range(150)
"""About one in six has something to fix."""


def test_safe_fixes_keep_values_and_gradients() -> None:
    found: list[tuple[int, Outcome]] = shared_pool().call(
        "tests.fixes.judging:batch", timeout=600, seeds=list(SEEDS)
    )
    assert len(found) > len(SEEDS) / 12
    wrong = {seed: (outcome.wrong, outcome.after) for seed, outcome in found if outcome.wrong}
    assert wrong == {}


def test_in_place_forms_compute_the_same() -> None:
    found: list[tuple[int, Rewrite]] = shared_pool().call(
        "tests.fixes.judging:rewrites", timeout=600, seeds=list(range(60))
    )
    assert len(found) > 10
    wrong = {seed: (rewrite.wrong, rewrite.after) for seed, rewrite in found if rewrite.wrong}
    assert wrong == {}
