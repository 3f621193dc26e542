"""Does an in-place version compute the same? Two texts of one file are run in real torch and compared.

User code runs only here, because it was asked for, in a process of its own that is stopped at a time limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

_START = """\
import sys
sys.path[:] = [each for each in sys.path if each]
import importlib.util
spec = importlib.util.spec_from_file_location("gradguard", sys.argv.pop())
sys.modules["gradguard"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["gradguard"])
from gradguard.runtime.lifeline import end_with_stdin
end_with_stdin()
from gradguard.runtime.verify_child import main
main(*sys.argv[1:])
"""
"""Compares. Modules are not searched for in the current folder, which is the user's, and this package is this very one,
whatever else is installed. That the process ends when its stdin does is seen to before torch is imported, which takes long.
"""

NO_WRITES = "it writes nothing in place"
"""The trouble of a program that leaves nothing to verify."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to run. `function`: `name`, `Class`, `Class.method`, `outer.inner`, or empty for the whole script.

    Where both texts are the same, it is compared with what it means.
    """

    path: str
    before: str
    after: str
    function: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> Python expression, with the names of the file and of torch."""
    outer: Mapping[str, str] = field(default_factory=dict)
    """The inputs of the function that makes a nested one."""
    arguments: Sequence[str] = ()
    """What a script finds in `sys.argv`."""
    other_file: bool = False
    """Whether the texts are of two files, which may round otherwise."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was seen. `trouble`: why nothing could be compared, empty where it could."""

    trouble: str = ""
    forward: tuple[str, ...] = ()
    """How values differ; nothing where they are the same."""
    backward: str = ""
    """The error of the version that is verified; empty where it runs."""
    gradients: tuple[str, ...] = ()
    reached: bool = True
    """Whether the version that is verified comes to its backward."""
    values: int = 0
    """Number of values that were compared: results, and what outlasts the call and was written."""
    compared: int = 0
    """Number of gradients that were compared."""
    changed: tuple[str, ...] = ()
    """Arguments that the verified version writes, and the other does not."""
    peak_before: int = 0
    """Most memory in use at one time, in bytes, over what was in use at the start; 0 if not known."""
    peak_after: int = 0
    writes: tuple[int, ...] = ()
    """Lines that write in place; 0 for those of other files."""
    unseen: tuple[str, ...] = ()
    """Writes that autograd does not see: `7:.data`."""
    tolerance: str = ""
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether something was compared, and all of it is the same."""
        wrong = self.trouble or self.forward or self.backward or self.gradients or self.changed
        return not wrong and self.values > 0


def verify(task: Task, timeout: float) -> Comparison:
    """Run both versions; `timeout` in seconds, for both together with torch's import."""
    with tempfile.TemporaryDirectory(prefix="gradguard-verify-", ignore_cleanup_errors=True) as folder:
        given, answer, words = Path(folder, "task.json"), Path(folder, "answer.json"), Path(folder, "words")
        given.write_text(json.dumps(asdict(task)), "utf-8")
        package = str(Path(__file__).resolve().parents[1] / "__init__.py")
        command = [sys.executable, "-c", _START, str(given), str(answer), package]
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
        last = _last(words.read_text("utf-8", "replace"))
        if not answer.exists():
            return Comparison(
                trouble=f"the process ended without an answer, as one does that is killed or calls os._exit{last}"
            )
        found = read_comparison(json.loads(answer.read_text("utf-8")))
        return replace(found, trouble=found.trouble + last) if found.trouble.endswith(SILENT_ENDS) else found


SILENT_ENDS = ("with exit code 1", "with exit code 2")
"""Why a program ends so it says itself, as argparse does."""


def _last(words: str) -> str:
    """What a program said last, to append to a sentence: the name of a crash where it was one."""
    lines = words.strip().splitlines()
    crash = [line for line in lines if line.startswith("Fatal Python error: ")]
    return f": {(crash or lines)[-1].strip()}" if lines else ""


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
