"""A watched program computes the same bits: all operators that torch has samples of, and generated programs."""

from __future__ import annotations

import os
import random

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.generated import BATCH, Difference
from tests.runtime.identity import COMPARE

# Their results are memory that nobody wrote.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
FULL = bool(os.environ.get("GRADGUARD_FULL"))
OPERATOR_SHARES = 40
PROGRAMS = 60
BATCH_SIZE = 30


@pytest.mark.parametrize("number", range(OPERATOR_SHARES if FULL else 1))
def test_operators(number):
    share = number if FULL else random.randrange(OPERATOR_SHARES)
    compared = shared_pool().call(COMPARE, timeout=600, share=share, of=OPERATOR_SHARES)
    assert not isinstance(compared, Died), f"share {share}: {compared}"
    assert compared.ran >= 10
    assert not compared.troubles
    assert not [d for d in compared.different if d[0] not in UNINITIALISED]


def shown(differences: list[Difference]) -> str:
    return "\n\n".join(f"{d.name}: {d.what}\n{d.detail}\n{d.text}" for d in differences[:5])


@pytest.fixture(scope="module")
def compared():
    first = random.randrange(10**6)
    return shared_pool().map(
        [
            (BATCH, 900.0, {"seeds": list(range(start, start + BATCH_SIZE)), "lines": False})
            for start in range(first, first + PROGRAMS, BATCH_SIZE)
        ]
    )


def test_generated_programs_end_alike(compared):
    assert not [r for r in compared if isinstance(r, Died)]
    outcomes: dict[str, int] = {}
    for counts, _ in compared:
        for name, count in counts.items():
            outcomes[name] = outcomes.get(name, 0) + count
    assert outcomes["ok"] > PROGRAMS / 3
    assert outcomes["raises"] > PROGRAMS / 10


def test_generated_programs_agree(compared):
    found = [d for r in compared if not isinstance(r, Died) for d in r[1]]
    assert not found, shown(found)
