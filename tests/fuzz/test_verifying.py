"""`gradguard verify` on random functions says what torch says of them and of their twins. GRADGUARD_FUZZ=2000 grows more."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.verifying import grown
from tests.oracle import shared_pool
from tests.oracle.pool import Died

SHARE = 40
BATCH = 20
COUNT = int(os.environ.get("GRADGUARD_FUZZ", SHARE))


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_no_same_that_is_wrong_and_no_difference_that_is_right(first: int) -> None:
    answer = shared_pool().call(
        "tests.fuzz.judged_verify:told", timeout=600, seeds=list(range(first, min(first + BATCH, COUNT)))
    )
    assert not isinstance(answer, Died), answer
    wrong, judged = answer
    assert not wrong, "\n\n".join(wrong)
    # Most twins run, and among the functions are some of each kind.
    assert judged["torch gave no verdict"] <= BATCH // 5
    assert judged["same"]
    assert judged["differs"]


def test_every_kind_is_grown() -> None:
    cases = [grown(seed) for seed in range(2000)]
    texts = "\n".join(case.text.partition("return grad, None")[2] for case in cases)
    for part in (
        "async def",
        "yield",
        "@property",
        "def around_it",
        "class Owner",
        "Data(",
        "Pair(",
        "Output(",
    ):
        assert texts.count(part) > 20, part
    for part in (
        ".data.",
        ".numpy()",
        "no_grad",
        "inplace=True",
        "nan",
        "inf",
        "int64",
        "complex64",
        "bfloat16",
    ):
        assert texts.count(part) > 20, part
    assert sum(case.against for case in cases) > 100
