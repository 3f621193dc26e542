"""Columns in every unit: what is counted in stretches comes to what is counted one by one."""

from __future__ import annotations

import random
import re

import pytest

from gradguard.source.lines import ENCODINGS, LONG, LineIndex, width
from tests.counting import steps

UNITS = {"utf-8": lambda char: len(char.encode("utf-8", "surrogatepass")), "utf-32": lambda char: 1,
         "utf-16": lambda char: 1 + (char > "\uffff")}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [0, 1, 30, LONG - 1, LONG, LONG + 1, 3 * LONG, 3 * LONG + 7])
@pytest.mark.parametrize(
    "alphabet", ["ab", "aé😋", "é", "😋", "a\ud83d\ude0b", "a" * 500 + "é"], ids=range(6)
)
def test_columns_and_units(encoding: str, size: int, alphabet: str) -> None:
    rng = random.Random(size)
    line = "".join(rng.choices(alphabet, k=size))
    index = LineIndex(f"é\n{line}\nb")
    sizes = [UNITS[encoding](char) for char in line]
    seen, column_at = [0], []
    for at, each in enumerate(sizes):
        seen.append(seen[-1] + each)
        column_at += [at + 1] * each
    assert width(line, encoding) == seen[-1]
    for column in {0, 1, 2, size, size + 1, size + 9, *(rng.randrange(size + 1) for _ in range(50))}:
        assert index.units(2, column, encoding) == seen[min(max(column - 1, 0), size)]
    for units in {-1, 0, 1, seen[-1], seen[-1] + 5, *(rng.randrange(seen[-1] + 1) for _ in range(50))}:
        expected = column_at[max(units, 0)] if max(units, 0) < seen[-1] else size + 1
        assert index.column(2, units, encoding) == expected
    assert index.units(9, 5, encoding) == 0
    assert index.column(9, 5, encoding) == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_place_in_a_long_line_takes_few_steps(encoding: str) -> None:
    index = LineIndex("é" + "x" * 3_000_000 + "é" * 3_000_000)
    index.units(1, 5, encoding)
    assert steps(lambda: index.units(1, 5_999_999, encoding)) < 1000
    assert steps(lambda: index.column(1, 5_999_999, encoding)) < 30_000


@pytest.mark.parametrize("ends", [["\n"], ["\r\n"], ["\r"], ["\r", "\n", "\r\n"], ["\n", "\r\n"], [""]])
def test_lines_are_those_that_editors_count(ends: list[str]) -> None:
    rng = random.Random(len(ends))
    for _ in range(200):
        text = "".join(rng.choice(["", "a", "é\u2028", *ends, *ends]) for _ in range(rng.randrange(12)))
        index = LineIndex(text)
        lines = re.split("\r\n|\n|\r", text)
        assert [index.line(number) for number in range(1, index.count + 1)] == lines
        starts = [0, *(match.end() for match in re.finditer("\r\n|\n|\r", text))]
        assert [index.start(number) for number in range(1, index.count + 1)] == starts
