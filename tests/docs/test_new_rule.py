"""`make new-rule` refuses what is no rule and names what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.pages import FOLDER, HEADINGS, read

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "docs.new_rule", *arguments],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT / "server")}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_rule_and_its_pages(tmp_path: Path) -> None:
    done = start("odd-pattern", "GG999", str(tmp_path))
    assert done.returncode == 0, done.stderr
    page = read(tmp_path / "odd_pattern.md")
    assert (page.code, page.name, tuple(page.sections)) == ("GG999", "odd-pattern", HEADINGS)
    names: dict[str, object] = {}
    exec(compile((tmp_path / "odd_pattern.py").read_text(), "odd_pattern.py", "exec"), names)
    rule = names["RULE"]
    assert (rule.code, rule.name, rule.on) == ("GG999", "odd-pattern", False)  # type: ignore[attr-defined]


def test_the_korean_page_has_the_headings_of_the_others(tmp_path: Path) -> None:
    start("odd-pattern", "GG999", str(tmp_path))
    korean = read(tmp_path / "ko" / "odd_pattern.md")
    assert tuple(korean.sections) == tuple(read(FOLDER / "ko" / "inplace_on_leaf.md").sections)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "not of the form some-pattern"),
        (["no-inplace", "GG999"], "must read well"),
        (["odd-pattern", "113"], "not of the form GG113"),
        (["inplace-on-leaf", "GG999"], "exists"),
        (["odd-pattern", "GG101"], "exists"),
    ],
)
def test_refuses(arguments: list[str], words: str) -> None:
    done = start(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
