"""What the judge of fixes takes for the same output."""

from __future__ import annotations

import numpy
import pytest

from tests.fixes.judging import Ran, differences, prints_alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.1234\n", "loss 0.1235\n"),
        ("-1.8169289827346802", "-1.8169289827346801"),
        ("1.0e-07 and 3", "1.1e-07 and 3"),
        ("tensor([0.5000, 1.2500])", "tensor([0.4999, 1.2500])"),
    ],
)
def test_rounding_is_no_difference(one: str, other: str) -> None:
    assert prints_alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.1234\n", "loss 0.1244\n"),
        ("loss 0.1234\n", "loss 0.1234\n0.5\n"),
        ("-1.8169289827346802", "-1.2773015499114990"),
        ("step 3: 0.5", "step 4: 0.5"),
        ("0.5", "-0.5"),
        ("True", "False"),
    ],
)
def test_other_numbers_and_words_are(one: str, other: str) -> None:
    assert not prints_alike(one, other)


def test_a_gradient_is_gone_only_where_there_was_one() -> None:
    assert differences(Ran(values={"part.grad": None}), Ran()) == []
    assert differences(Ran(values={"w.grad": numpy.ones(3)}), Ran()) == ["w.grad is gone"]
    assert differences(Ran(values={"w": None}), Ran()) == ["w is gone"]
