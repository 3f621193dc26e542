"""Safe fixes and in-place forms of programs grown at random keep what the programs compute. `make fuzz` asks for many more."""

from __future__ import annotations

from typing import Any

from tests.fixes.outcomes import NotGrown
from tests.oracle import shared_pool

SEEDS = range(150)
"""About one in six has something to fix."""
UNUSUAL = (160004409,)
"""Programs with tensors that torch does not give the rows of."""


def asked(function: str, seeds: list[int]) -> list[tuple[int, Any]]:
    """What a worker says of the programs of these seeds, all of which can be grown."""
    found = shared_pool().call(f"tests.fixes.judging:{function}", timeout=600, seeds=seeds)
    assert {seed: one.words for seed, one in found if isinstance(one, NotGrown)} == {}
    return list(found)


def test_safe_fixes_keep_values_and_gradients() -> None:
    found = asked("batch", [*SEEDS, *UNUSUAL])
    assert len(found) > len(SEEDS) / 12
    wrong = {seed: (outcome.wrong, outcome.after) for seed, outcome in found if outcome.wrong}
    assert wrong == {}


def test_in_place_forms_compute_the_same() -> None:
    found = asked("rewrites", list(range(60)))
    assert len(found) > 10
    wrong = {seed: (rewrite.wrong, rewrite.after) for seed, rewrite in found if rewrite.wrong}
    assert wrong == {}
