"""Whenever a command is killed: no process stays, no file is half written, no draft is left."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.hostile.arena import Arena
from tests.hostile.programs import MISTAKE
from tests.hostile.share import seeds

FIXABLE = MISTAKE.replace("y.add_(1)", "y = y.relu_()")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
COMMANDS = (
    ("check", "--jobs=2", "."),
    ("check", "--jobs=2", "--no-cache", "--format=json", "."),
    ("check", "--fix", "--unsafe-fixes", "."),
    ("check", "--write-baseline", "baseline.json", "."),
    ("check", "--output", "report.json", "--format=json", "."),
    ("server",),
)


@pytest.mark.parametrize("seed", seeds(6))
def test_a_kill_at_any_moment(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    arena = Arena(tmp_path)
    words = COMMANDS[seed % len(COMMANDS)]
    for number in range(40):
        (arena.project / f"module{number}.py").write_text(FIXABLE * 3)
    before = arena.snapshot()
    process = arena.start(*words, stdin=-1)
    time.sleep(choose.uniform(0.02, 2.5))
    process.send_signal(choose.choice(SIGNALS))
    # A pipe that a worker holds open would keep this waiting.
    process.communicate(timeout=30)

    deadline = time.monotonic() + 10
    while arena.running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not arena.running(), f"{words}: processes are left"
    now = arena.snapshot()
    new = {name.rsplit("/", 1)[-1] for name in now.keys() - before.keys()}
    assert new <= {"baseline.json", "report.json"}, f"{words}: left {new}"
    for name in new:
        json.loads((arena.project / name).read_text())
    texts = {path.read_text() for path in arena.project.glob("module*.py")}
    assert FIXABLE * 3 in texts or "--fix" in words
    assert len(texts) <= 2, f"{words}: half fixed"


@pytest.mark.parametrize("seed", seeds(1, 500))
def test_folders_that_become_links_while_they_are_read(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    arena = Arena(tmp_path)
    folder, aside = arena.project / "package", arena.project / "aside"
    folder.mkdir()
    for number in range(30):
        (folder / f"module{number}.py").write_text(FIXABLE)
    thesis = arena.top / "home" / "code" / "thesis" / "chapters"
    before = {name: what for name, what in arena.snapshot().items() if "/thesis" in name}
    process = arena.start("check", "--fix", "--unsafe-fixes", ".")
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        os.rename(folder, aside)
        folder.symlink_to(thesis)
        time.sleep(choose.uniform(0, 0.002))
        folder.unlink()
        os.rename(aside, folder)
        time.sleep(choose.uniform(0, 0.002))
    process.communicate(timeout=60)
    after = {name: what for name, what in arena.snapshot().items() if "/thesis" in name}
    assert before == after
