"""Lines of two texts that are the same, and stretches across them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradguard.findings import Span
from gradguard.source.piece import count_lines
from gradguard.source.places import Places, Stretch, lines_of, same_lines

LINES = st.lists(st.sampled_from(["a", "b", "", "c d"]), max_size=12)


@given(LINES, LINES)
def test_runs_are_equal_lines_in_order(one: list[str], other: list[str]) -> None:
    at = before = 0
    for first, second, lines in same_lines(one, other):
        assert first >= at
        assert second >= before
        assert one[first : first + lines] == other[second : second + lines]
        at, before = first + lines, second + lines
    assert sum(run[2] for run in same_lines(one, one)) == len(one)


@pytest.mark.parametrize(
    "others",
    [[f"new {n}" if n % 2 else f"line {n}" for n in range(3000)], ["ab"[n % 2] for n in range(1000)]],
    ids=["many", "alike"],
)
def test_of_large_differences_only_the_ends_count(others: list[str]) -> None:
    one = [
        "head",
        *(f"line {n}" if len(others) > 1000 else "ab"[n // 2 % 2] for n in range(len(others))),
        "tail",
    ]
    other = ["head", "x", *others, "y", "tail"]
    assert same_lines(one, other) == [(0, 0, 1), (len(one) - 1, len(other) - 1, 1)]


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\n\n", "a\rb\r\nc", "\r", "\n"])
def test_lines_are_those_that_are_counted(text: str) -> None:
    assert len(lines_of(text)) == count_lines(text)


PLACES = Places(
    [Stretch(1, 1, 3, True), Stretch(4, 6, 1, False), Stretch(5, 7, 2, False), Stretch(8, 10, 5, True)]
)
"""Typed lines 1 to 3 are read as they are, two lines of what is read are gone, line 7 was typed in the place of 9."""


def test_lines_there_and_back() -> None:
    assert [PLACES.read(line) for line in range(1, 10)] == [1, 2, 3, 6, 7, 8, None, 10, 11]
    assert [PLACES.typed(line) for line in range(1, 12)] == [1, 2, 3, None, None, 4, 5, 6, None, 8, 9]
    assert PLACES.read_between(1, 7) == (1, 8)
    assert PLACES.read_between(7, 9) == (10, 11)
    assert PLACES.read_between(7, 7) is None


@pytest.mark.parametrize(
    ("lines", "typed", "alive"),
    [
        ((1, 3), (1, 3), True),
        ((6, 8), (4, 6), False),
        ((3, 6), None, False),
        ((8, 10), None, False),
        ((4, 4), None, False),
        ((10, 11), (8, 9), True),
    ],
)
def test_a_stretch_was_typed_if_all_of_its_lines_were(
    lines: tuple[int, int], typed: tuple[int, int] | None, alive: bool
) -> None:
    span = Span(lines[0], 3, lines[1], 5)
    assert PLACES.span(span) == (Span(typed[0], 3, typed[1], 5) if typed else None)
    assert PLACES.alive(span) is alive
