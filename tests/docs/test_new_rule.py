"""`make new-rule` refuses what is no rule and names what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.pages import HEADINGS, read

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "docs.new_rule", *arguments],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT / "server")}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_rule_and_its_page(tmp_path: Path) -> None:
    done = start("some-pattern", "GG113", str(tmp_path))
    assert done.returncode == 0, done.stderr
    page = read(tmp_path / "some_pattern.md")
    assert (page.code, page.name, tuple(page.sections)) == ("GG113", "some-pattern", HEADINGS)
    names: dict[str, object] = {}
    exec(compile((tmp_path / "some_pattern.py").read_text(), "some_pattern.py", "exec"), names)
    rule = names["RULE"]
    assert (rule.code, rule.name, rule.on) == ("GG113", "some-pattern", False)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "not of the form some-pattern"),
        (["no-inplace", "GG113"], "must read well"),
        (["some-pattern", "113"], "not of the form GG113"),
        (["inplace-on-leaf", "GG113"], "exists"),
        (["some-pattern", "GG101"], "exists"),
    ],
)
def test_refuses(arguments: list[str], words: str) -> None:
    done = start(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
