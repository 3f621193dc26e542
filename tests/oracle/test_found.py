"""What was found in released libraries is what torch says of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oracle import judge

FOUND = Path(__file__).parents[2] / "benchmarks" / "results" / "FOUND.md"
PROGRAMS = re.findall(
    r"^## (.+?)$.*?^```python\n(.*?)^```$", FOUND.read_text("utf-8"), re.MULTILINE | re.DOTALL
)


def test_each_has_a_program() -> None:
    assert len(PROGRAMS) == FOUND.read_text("utf-8").count("\n## ") > 0


@pytest.mark.parametrize(
    "program", [program for _, program in PROGRAMS], ids=[title for title, _ in PROGRAMS]
)
def test_torch_raises(program: str) -> None:
    verdict = judge(program)
    assert verdict.outcome == "raises", verdict
