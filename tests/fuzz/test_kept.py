"""Disagreements found by fuzzing, made small and kept: torch and the checker must agree on each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.compare import Case
from tests.fuzz.run import shown
from tests.fuzz.shrink import FIXTURES
from tests.oracle.pool import Pool

MARK = re.compile(r"\s*# expect: (GG\d{3})")
FILES = sorted(FIXTURES.glob("*.py"))


@pytest.fixture(scope="module")
def cases() -> Iterator[dict[Path, Case]]:
    pool = Pool(1)
    codes = [MARK.sub("", path.read_text("utf-8")) for path in FILES]
    answer: list[Case] = pool.call("tests.fuzz.compare:examine_all", timeout=600.0, codes=codes)
    yield dict(zip(FILES, answer))
    pool.close()


def marks(path: Path) -> dict[int, str]:
    found = ((n, MARK.search(line)) for n, line in enumerate(path.read_text("utf-8").split("\n"), 1))
    return {n: match.group(1) for n, match in found if match}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_torch_and_checker_agree(path: Path, cases: dict[Path, Case]) -> None:
    case = cases[path]
    assert case.outcome == {"right": "ok"}.get(path.stem.split("_")[0], path.stem.split("_")[0])
    assert set(marks(path)) <= case.culprits, "a mark where torch finds no fault"
    assert not case.disagreement, f"{case.disagreement}\n{shown(case)}"
