"""The programs of the documentation are what the pages say of them, to the checker and to torch."""

from __future__ import annotations

import pytest

from tests.docs.pages import programs
from tests.fixtures.functions import RAISES
from tests.marks import disagreement, expected, findings
from tests.oracle import judge

each_program = pytest.mark.parametrize(("name", "text"), programs(), ids=[name for name, _ in programs()])
ERROR = "GG101"


@each_program
def test_checker_agrees(name: str, text: str) -> None:
    assert disagreement(text, findings(text), expected(text, ERROR)) == []


@each_program
def test_torch_agrees(name: str, text: str) -> None:
    codes = {code for _, code in expected(text, ERROR)}
    silenced = "gradguard: ignore[" in text
    assert judge(text, timeout=180).outcome == ("raises" if codes & RAISES or silenced else "ok")
