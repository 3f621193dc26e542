"""The repository speaks of itself only, and its generated texts are up to date."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Put together so that this file does not find itself.
FOREIGN = re.compile("|".join(["/wo" + "rk/", "/fa" + "rm/", "this ses" + "sion", "TO" + "DO", "FIX" + "ME"]))
NOT_OURS = {"package-lock.json"}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True
    ).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and name not in NOT_OURS]


def test_no_word_of_the_workshop() -> None:
    found = []
    for path in tracked():
        if not path.is_file() or path.suffix in (".png", ".vsix"):
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if FOREIGN.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


def test_pins_of_the_requirements_are_those_of_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for table, name in (
        ("dependencies", "requirements.txt"),
        ("fleet", "requirements-fleet.txt"),
        ("mcp", "requirements-mcp.txt"),
    ):
        listed = (ROOT / name).read_text("utf-8")
        section = re.split(rf"^{table} = \[$", project, flags=re.MULTILINE)[1].split("\n]\n")[0]
        needed = re.findall(r'^  "([\w\[\]-]+==[^;"]+)', section, re.MULTILINE)
        assert needed
        for pin in needed:
            assert f"{pin}\n" in listed or f"{pin};" in listed, pin
