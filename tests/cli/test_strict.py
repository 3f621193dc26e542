"""An internal error leaves the findings around it, is counted and told in every format, and fails a strict run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradguard import main
from gradguard.engine.models import library
from tests.cli.running import RAISES

FAULTY = "def faulty(x):\n    return torch.erf(x)\n"
BOTH = RAISES + FAULTY
"""A finding in line 5, and a function that cannot be analysed in line 7."""
MESSAGE = "not analysed: internal error ZeroDivisionError in broken; please report it"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", broken)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(*words: str) -> int:
    return main.main(["check", "-j", "1", *words])


def test_findings_decide_the_exit_code_unless_the_run_is_strict(project: Path) -> None:
    (project / "both.py").write_text(BOTH)
    assert (checked(), checked("--strict"), checked("--exit-zero")) == (1, 2, 0)
    (project / "both.py").write_text("import torch\n" + FAULTY)
    assert (checked(), checked("--strict"), checked("--strict", "--exit-zero")) == (0, 2, 2)
    (project / "both.py").write_text(RAISES)
    assert (checked(), checked("--strict")) == (1, 1)


def test_the_summary_counts_it_and_the_log_shows_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "both.py").write_text(BOTH)
    checked()
    quiet = capsys.readouterr()
    assert "1 place not analysed because of an internal error; --verbose shows it" in quiet.out
    assert "not analysed to the end" not in quiet.out
    assert quiet.err.splitlines()[0].startswith(("", "First"))
    assert "internal error" not in quiet.err
    checked("--verbose")
    loud = capsys.readouterr().err
    assert f"gradguard: both.py:7: {MESSAGE}\n" in loud
    assert "ZeroDivisionError: secret" in loud
    checked("--strict", "--verbose")
    assert capsys.readouterr().err.count(MESSAGE) == 1


def test_a_strict_run_says_why_it_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "both.py").write_text(BOTH)
    checked("--strict")
    assert f"gradguard: error: both.py:7: {MESSAGE}\n" in capsys.readouterr().err


def document(capsys: pytest.CaptureFixture[str], form: str, *words: str) -> Any:
    capsys.readouterr()
    checked("--format", form, *words)
    return json.loads(capsys.readouterr().out)


def test_reports_carry_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "both.py").write_text(BOTH)
    for _ in range(2):  # and no cache keeps the rest for the whole
        report = document(capsys, "json")
        assert [each["line"] for each in report["findings"]] == [5]
        assert [(each["line"], each["message"], each["internal_error"]) for each in report["limits"]] == [
            (7, MESSAGE, True)
        ]
        assert report["errors"] == []
    for words, successful in ((), True), (("--strict",), False):
        (run,) = document(capsys, "sarif", *words)["runs"]
        (invocation,) = run["invocations"]
        assert invocation["executionSuccessful"] is successful
        (told,) = invocation["toolExecutionNotifications"]
        assert (told["level"], told["message"]["text"]) == ("error", MESSAGE)
        assert told["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
        assert len(run["results"]) == 1
    checked("--format", "github")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"::warning file=both.py,line=7,title=gradguard could not check this::{MESSAGE}"


def test_what_the_analysis_is_not_meant_to_do_fails_no_strict_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradguard.engine.driver.entry.MAX_STEPS", 10)
    (project / "long.py").write_text("import torch\n" + "x = torch.ones(2)\n" * 30)
    assert checked("--strict") == 0


def test_a_file_that_is_lost_is_told_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gradguard.engine.driver.reuse.surroundings", None)
    (project / "both.py").write_text(BOTH)
    for words in ((), ("--strict",)):
        assert checked("--format", "github", *words) == 2
        shown = capsys.readouterr()
        assert len(shown.out.splitlines()) == 1
        assert len(shown.err.splitlines()) == 1


def test_fixes_are_made_around_a_fault(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = "import torch\nx = 1  # gradguard: ignore[GG101]\n"
    (project / "both.py").write_text(RAISES + FAULTY)
    (project / "idle.py").write_text(idle)
    assert checked("--fix", "--unsafe-fixes") == 0
    assert (project / "both.py").read_text() == RAISES.replace("x.exp()", "x.exp().clone()") + FAULTY
    assert (project / "idle.py").read_text() == "import torch\nx = 1\n"
