"""What the command says before any of its commands runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradguard.main import CANNOT, main


@pytest.mark.parametrize("words", [["run", "train.py"], ["verify", "train.py"]])
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


def test_help_needs_no_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "# gradguard: inputs x=randn(4, 3, requires_grad=True), n=2" in out
    assert "2  nothing could be compared" in out


@pytest.mark.parametrize(
    "start",
    ["import gradguard.lsp.server", "from gradguard.main import main; main(['check', '.'])"],
)
def test_where_the_system_keeps_caches_is_asked_only_by_who_needs_it(start: str, tmp_path: Path) -> None:
    code = f"import atexit, sys; atexit.register(lambda: print('platformdirs' in sys.modules)); {start}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "GRADGUARD_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("False\n"), done.stderr
