"""`make demo` shows what it promises: several different mistakes, a hover and the diff of a fix."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"


def test_demo() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, str(DEMO / "open_in_editor.py")],
        env=environment, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    codes = set(re.findall(r"^ +(?:error|warning|information) (GG\d{3})", done.stdout, re.MULTILINE))
    assert len(codes) >= 5, codes
    assert "hover on line" in done.stdout
    assert re.search(r"^│ -.*\n│ \+", done.stdout, re.MULTILINE), "no diff"
    for editor in ("VS Code", "Neovim", "Helix", "CI"):
        assert editor in done.stdout


def test_the_demo_is_a_script_that_trains() -> None:
    lines = (DEMO / "train_gan.py").read_text().splitlines()
    assert 50 <= len(lines) <= 80
