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

_START = """\
import sys
sys.path[:] = [each for each in sys.path if each]
sys.path.append(sys.argv.pop())
import runpy
del sys.argv[0]
runpy.run_path(sys.argv.pop())["end_with_stdin"]()
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a file. Modules are searched for neither beside it nor in the current folder, which is the user's. This package
is there for a program that imports it. That the process ends when its stdin does is seen to before torch is imported,
which takes long.
"""


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
    with tempfile.TemporaryDirectory(prefix="gradguard-verify-", ignore_cleanup_errors=True) as folder:
        given, answer, words = Path(folder, "task.json"), Path(folder, "answer.json"), Path(folder, "words")
        given.write_text(json.dumps(asdict(task)), "utf-8")
        child, lifeline = (str(Path(__file__).with_name(name)) for name in ("verify_child.py", "lifeline.py"))
        here = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, "-c", _START, child, str(given), str(answer), lifeline, here]
        # Into a file and not through a pipe, at whose other end the program's own children may sit for ever.
        with words.open("wb") as said:
            process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": _path(), "KINETO_LOG_LEVEL": "6"},
                cwd=str(Path(task.path).resolve().parent),
                stdin=subprocess.PIPE,  # nobody writes there: it ends when this process does
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        assert process.stdin is not None
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            return Comparison(trouble=f"stopped after {timeout:g} s")
        finally:
            # With it ends the program, and whatever that has started.
            process.stdin.close()
            process.wait()
        if not answer.exists():
            last = words.read_text("utf-8", "replace").strip().splitlines()[-1:]
            return Comparison(trouble=f"the process ended without an answer: {' '.join(last)}")
        return read_comparison(json.loads(answer.read_text("utf-8")))


def _path() -> str:
    """What is searched here, for a process that starts in another folder; its own folder is not meant."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(os.path.abspath(each) for each in given if each)


def read_comparison(found: Mapping[str, Any]) -> Comparison:
    """A comparison from its plain values."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
    }
    return Comparison(**values)
