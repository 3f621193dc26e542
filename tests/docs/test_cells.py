"""The table of operations on the Korean page: every phrase is said in Korean, with the same names in it."""

from __future__ import annotations

import re

import pytest

from docs import build, cells
from gradguard.ops import listing, table

NAME = re.compile(r"`[^`]*`")
PLAIN = re.compile(r"`[^`]*`|\((?:\w+(?:: [\w ]+)?(?:, )?)+\)|dtype")
"""What stays as it is: names, and the arguments that tell one form of an operation from another."""


def test_every_cell_of_the_table_is_korean() -> None:
    lines = listing.render_ops(table.load())
    assert len(lines) > 1_000
    for line in lines:
        for english, said in zip(build.told(line, "en"), build.told(line, "ko"), strict=True):
            assert sorted(NAME.findall(said)) == sorted(NAME.findall(english)), line.name
            assert not re.search("[A-Za-z]", PLAIN.sub("", said)), f"{line.name}: {said}"


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("", ""),
        ("yes if `x` has no dimension", "`x`의 차원 수가 0일 때 예"),
        ("`b` if `a` requires grad", "`a`의 기울기가 필요할 때 `b`"),
        (
            "`c` if `a` or `b` requires grad and `n == 1` or sometimes (shapes or values decide)",
            "`a` 또는 `b`의 기울기가 필요하고 `n == 1`이거나 때에 따라 `c` (모양이나 값에 따라 다름)",
        ),
        (
            "(self, dim: int) if `dim` is given: `self` (not counted)",
            "(self, dim: int) `dim` 값이 지정될 때: `self` (버전에 세지 않음)",
        ),
    ],
)
def test_a_cell(english: str, said: str) -> None:
    assert cells.korean(english) == said


@pytest.mark.parametrize(
    "text", ["`a` unless `b`", "`a` if `b` is heavy", "`a` if `b` requires grad but not now"]
)
def test_a_phrase_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no Korean"):
        cells.korean(text)
