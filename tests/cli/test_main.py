"""What the command says before any of its commands runs."""

from __future__ import annotations

import sys

import pytest

from gradguard.cli.main import CANNOT, main


@pytest.mark.parametrize("words", [["run", "train.py"], ["run", "--help"], ["verify", "train.py"]])
def test_without_torch_it_is_said_where_to_install(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(words) == CANNOT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"gradguard: error: `gradguard {words[0]}` runs your code with torch, and ")
    assert "has no torch; install gradguard into the environment that has it" in err
    assert err.count("\n") == 1
