"""`make new-rule` refuses what is no rule and names what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
    done = subprocess.run(
        [sys.executable, "-m", "docs.new_rule", *arguments],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT / "server")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
