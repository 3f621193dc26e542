"""The programs of the documentation are what the pages say of them, to the checker and to torch."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks, programs
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


PIECES = {
    "CONTRIBUTING.md-1": "asks the judge, below",
    "CONTRIBUTING.md-2": "a function of a fixture, below",
    "CONTRIBUTING.md-3": "a model, see test_contributing.py",
    "CONTRIBUTING.md-4": "a model of a framework, see there",
    "CONTRIBUTING.md-5": "an observer, see there",
    "client/media/settings.md-1": "one line that shows a comment",
}
"""Blocks that are no program of their own."""


def test_every_block_is_a_program_or_a_known_piece() -> None:
    assert {name for name, _ in blocks("python")} == {*PIECES, *(name for name, _ in programs())}


def test_asking_the_judge(capsys: pytest.CaptureFixture[str]) -> None:
    exec(dict(blocks("python"))["CONTRIBUTING.md-1"], {})
    assert "raises" in capsys.readouterr().out


def test_the_function_of_a_fixture() -> None:
    text = "import torch\n\n\n" + dict(blocks("python"))["CONTRIBUTING.md-2"] + "\n\nthrough_a_view_bad()\n"
    assert disagreement(text, findings(text), expected(text, ERROR)) == []
    assert judge(text, timeout=180).outcome == "raises"
