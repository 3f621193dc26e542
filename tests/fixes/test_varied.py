"""Each kind of fix on programs that are generated: none raises anew, what is beside the fix stays, a second run changes nothing.

`GRADGUARD_FUZZ=300` asks for so many of each kind, as `make fuzz` does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.oracle import shared_pool

EACH = int(os.environ.get("GRADGUARD_FUZZ", "1"))
KINDS = sorted(
    each.name for each in (Path(__file__).parents[2] / "fixtures" / "fixes").iterdir() if each.is_dir()
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_fix(kind: str) -> None:
    count, wrong = shared_pool().call(
        "tests.fixes.varied:judged", timeout=60 + 30 * EACH, kind=kind, seeds=list(range(EACH))
    )
    assert wrong == []
    assert count >= EACH * 0.8
