"""Does an in-place version compute the same? Two texts of one file are run in real torch and compared.

User code runs only here, because it was asked for, in a process of its own that is stopped at a time limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """What to run. `function`: `name`, `Class`, `Class.method`, or empty for the whole script."""

    path: str
    before: str
    after: str
    function: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> Python expression, with the names of the file and of torch."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was seen. `trouble`: why nothing could be compared, empty where it could."""

    trouble: str = ""
    forward: tuple[str, ...] = ()
    """How values differ; nothing where they are the same."""
    backward: str = ""
    """The error of the version that is verified; empty where it runs."""
    gradients: tuple[str, ...] = ()
    compared: int = 0
    """Number of gradients that were compared."""
    changed: tuple[str, ...] = ()
    """Inputs that the verified version writes, and the other does not."""
    peak_before: int = 0
    """Most memory in use at one time, in bytes, over what was in use at the start."""
    peak_after: int = 0

    @property
    def holds(self) -> bool:
        """Whether the verified version computes the same."""
        return not (self.trouble or self.forward or self.backward or self.gradients or self.changed)


def verify(task: Task, timeout: float) -> Comparison:
    """Run both versions; `timeout` in seconds, for both together with torch's import."""
    with tempfile.TemporaryDirectory(prefix="gradguard-verify-") as folder:
        given, answer = Path(folder, "task.json"), Path(folder, "answer.json")
        given.write_text(json.dumps(asdict(task)), "utf-8")
        command = [sys.executable, "-m", "gradguard.runtime.verify_child", str(given), str(answer)]
        here = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "KINETO_LOG_LEVEL": "6"}
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=str(Path(task.path).resolve().parent),
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Comparison(trouble=f"stopped after {timeout:g} s")
        if not answer.exists():
            words = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return Comparison(trouble=f"the process ended without an answer: {' '.join(words)}")
        return read_comparison(json.loads(answer.read_text("utf-8")))


def read_comparison(found: Mapping[str, Any]) -> Comparison:
    """A comparison from its plain values."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
    }
    return Comparison(**values)
