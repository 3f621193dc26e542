"""What the kernel knows of processes, on Linux."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 20.0
"""Seconds for what takes a few milliseconds on a quiet machine. Where it fails, it would take for ever."""


def alive(**wanted: int) -> set[int]:
    """Processes with this `parent` or `session` that have not ended."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            known = {"parent": int(parent), "session": int(session)}
            if state not in "ZX" and wanted.items() <= known.items():
                found.add(int(folder.name))
    return found


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something comes to be so."""
    until = time.monotonic() + PATIENCE
    while not (held := holds()) and time.monotonic() < until:
        time.sleep(0.01)
    return held


def same_file(number: int, identity: tuple[int, int]) -> bool:
    """Whether a descriptor stands for the file with this device and inode."""
    try:
        found = os.fstat(number)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == identity
